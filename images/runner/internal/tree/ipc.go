package tree

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// sysvKinds are the three kinds of System V IPC objects, which outlive every process.
var sysvKinds = []struct {
	list, id string
	control  uintptr
}{
	{"/proc/sysvipc/shm", "shmid", syscall.SYS_SHMCTL},
	{"/proc/sysvipc/msg", "msqid", syscall.SYS_MSGCTL},
	{"/proc/sysvipc/sem", "semid", syscall.SYS_SEMCTL},
}

// RemoveIPC removes the shared memory, message queues and semaphores that one of uids has created.
//
// Only an object's creator (or CAP_SYS_ADMIN, which a task container lacks) may remove it, so one
// thread becomes each creator in turn.
func RemoveIPC(uids map[uint32]bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var problems []error
	for _, kind := range sysvKinds {
		objects, err := sysvObjects(kind.list, kind.id)
		if err != nil {
			continue // a kernel without it
		}
		for id, creator := range objects {
			if !uids[creator] || creator == 0 {
				continue
			}
			if err := removeAs(creator, kind.control, id); err != nil {
				problems = append(problems, fmt.Errorf("%s %d: %w", kind.list, id, err))
			}
		}
	}
	return errors.Join(problems...)
}

// sysvObjects reads a table of /proc/sysvipc: id -> uid of the creator.
func sysvObjects(list, idColumn string) (map[int]uint32, error) {
	file, err := os.Open(list)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	objects := map[int]uint32{}
	lines := bufio.NewScanner(file)
	var columns map[string]int
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if columns == nil {
			columns = map[string]int{}
			for at, name := range fields {
				columns[name] = at
			}
			continue
		}
		if id, creator, ok := sysvObject(fields, columns, idColumn); ok {
			objects[id] = creator
		}
	}
	return objects, lines.Err()
}

func sysvObject(fields []string, columns map[string]int, idColumn string) (int, uint32, bool) {
	at, hasID := columns[idColumn]
	by, hasCreator := columns["cuid"]
	if !hasID || !hasCreator || len(fields) <= max(at, by) {
		return 0, 0, false
	}
	id, err := strconv.Atoi(fields[at])
	if err != nil {
		return 0, 0, false
	}
	creator, err := strconv.ParseUint(fields[by], 10, 32)
	return id, uint32(creator), err == nil
}

// removeAs removes an object as its creator. Raw calls change this thread's user alone.
func removeAs(uid uint32, control uintptr, id int) error {
	const unchanged = ^uintptr(0)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, unchanged, uintptr(uid), unchanged); errno != 0 {
		return errno
	}
	const remove = 0 // IPC_RMID; semctl takes it as its third argument, the others as their second
	_, _, errno := syscall.RawSyscall(control, uintptr(id), remove, remove)
	if _, _, back := syscall.RawSyscall(syscall.SYS_SETRESUID, unchanged, 0, unchanged); back != 0 {
		panic("a thread could not become root again: " + back.Error())
	}
	if errno != 0 && errno != syscall.EINVAL && errno != syscall.EIDRM {
		return errno
	}
	return nil
}
