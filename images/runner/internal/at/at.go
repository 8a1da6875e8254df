// Package at wraps the directory-relative system calls that the standard library does not export.
//
// Nothing here follows a symbolic link in the last component, and no caller passes a name with a
// slash: a walk by descriptors cannot be led out of its root by a link that is swapped in midway.
package at

import (
	"bytes"
	"os"
	"syscall"
	"unsafe"
)

const (
	symlinkNoFollow = 0x100
	removeDir       = 0x200
)

// Open opens name below dir. O_NOFOLLOW and O_CLOEXEC are always set.
func Open(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := syscall.Openat(dir, name, flags|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, mode)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// OpenDir opens a directory below dir; a link, even to a directory, is refused.
func OpenDir(dir int, name string) (int, error) {
	return Open(dir, name, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
}

// OpenRoot opens a directory by its path. Links are followed except in the last component.
func OpenRoot(path string) (int, error) {
	fd, err := Open(-100, path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// Mkdir makes a directory below dir.
func Mkdir(dir int, name string, mode uint32) error { return syscall.Mkdirat(dir, name, mode) }

// Unlink removes a file, link or special file below dir.
func Unlink(dir int, name string) error { return unlink(dir, name, 0) }

// Rmdir removes an empty directory below dir.
func Rmdir(dir int, name string) error { return unlink(dir, name, removeDir) }

func unlink(dir int, name string, flags uintptr) error {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	return call(syscall.SYS_UNLINKAT, uintptr(dir), uintptr(unsafe.Pointer(p)), flags, 0, 0)
}

// Rename moves oldname below olddir to newname below newdir, replacing what is there.
func Rename(olddir int, oldname string, newdir int, newname string) error {
	return syscall.Renameat(olddir, oldname, newdir, newname)
}

// Symlink makes a link named name below dir.
func Symlink(target string, dir int, name string) error {
	t, err := syscall.BytePtrFromString(target)
	if err != nil {
		return err
	}
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	return call(syscall.SYS_SYMLINKAT, uintptr(unsafe.Pointer(t)), uintptr(dir), uintptr(unsafe.Pointer(p)), 0, 0)
}

// Readlink reads the target of the link name below dir.
func Readlink(dir int, name string) (string, error) {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return "", err
	}
	buf := make([]byte, 4097)
	n, _, errno := syscall.Syscall6(syscall.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), 0, 0)
	if errno != 0 {
		return "", errno
	}
	return string(buf[:n]), nil
}

// Stat describes name below dir without following it.
func Stat(dir int, name string) (syscall.Stat_t, error) {
	var st syscall.Stat_t
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return st, err
	}
	err = call(sysFstatat, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&st)), symlinkNoFollow, 0)
	return st, err
}

// Chown sets the owner of name below dir without following it.
func Chown(dir int, name string, uid, gid int) error {
	return syscall.Fchownat(dir, name, uid, gid, symlinkNoFollow)
}

// Chtimes sets the modification time (and the same access time) of name below dir without following it.
func Chtimes(dir int, name string, mtime syscall.Timespec) error {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	times := [2]syscall.Timespec{mtime, mtime}
	return call(syscall.SYS_UTIMENSAT, uintptr(dir), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(&times)), symlinkNoFollow, 0)
}

// Lister reads a directory's entries in batches of bounded size.
type Lister struct {
	fd  int
	buf [32 * 1024]byte
}

// NewLister lists the directory behind fd, which it does not own.
func NewLister(fd int) *Lister { return &Lister{fd: fd} }

// Rewind starts again at the first entry.
func (l *Lister) Rewind() error {
	_, err := syscall.Seek(l.fd, 0, 0)
	return err
}

// Next returns some names, without "." and ".."; none means the end.
func (l *Lister) Next() ([]string, error) {
	for {
		n, err := syscall.ReadDirent(l.fd, l.buf[:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return nil, err
		}
		if names := parse(l.buf[:n]); len(names) > 0 {
			return names, nil
		}
	}
}

// parse reads struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name.
func parse(buf []byte) []string {
	var names []string
	for len(buf) >= 19 {
		length := int(buf[16]) | int(buf[17])<<8
		if length < 19 || length > len(buf) {
			return names
		}
		name := buf[19:length]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if s := string(name); s != "." && s != ".." {
			names = append(names, s)
		}
		buf = buf[length:]
	}
	return names
}

func call(number, a, b, c, d, e uintptr) error {
	for {
		_, _, errno := syscall.Syscall6(number, a, b, c, d, e, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return errno
		}
		return nil
	}
}
