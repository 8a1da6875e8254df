package serve

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// reportDescriptor is where the launcher says why the program could not be started.
const reportDescriptor = 3

// adjustment makes the kernel's OOM killer prefer a job's processes to the runner.
const adjustment = "500"

// Launch is the second half of a job's start: it runs in the new process, under the job's uid, in
// the job's directory and environment. It sets the limits and becomes the program. It returns only
// when that failed; the reason has then been written to the report descriptor.
func Launch(args []string) {
	syscall.CloseOnExec(reportDescriptor)
	if err := become(args); err != nil {
		fmt.Fprint(os.NewFile(reportDescriptor, "report"), err)
	}
}

func become(args []string) error {
	if len(args) < 2 {
		return errors.New("launch: no program")
	}
	files, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	program, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	if err := limitFiles(files); err != nil {
		return err
	}
	// Best effort: a container without this file is one where the kernel decides alone.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(adjustment), 0)
	if err := syscall.Exec(program, args[1:], os.Environ()); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}

// limitFiles lowers both limits of open files; a limit that is lower already stays.
func limitFiles(files uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Max = min(limit.Max, files)
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("RLIMIT_NOFILE %d: %w", files, err)
	}
	return nil
}
