package apply

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"

	"stayer.dev/runner/internal/at"
)

// maxFile bounds the size of a file that is patched.
const maxFile = 1 << 30

var (
	errDirectory = errors.New("is a directory")
	errBeyond    = errors.New("lies beyond a symbolic link")
)

// disk is the directory that is patched, reached by descriptors only.
type disk struct{ root int }

func openDisk(dir string) (*disk, error) {
	root, err := at.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &disk{root}, nil
}

func (d *disk) close() { syscall.Close(d.root) }

// dirname is the parent of a relative path, "" for the root.
func dirname(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

// parent opens the directory that holds p. The caller closes it.
func (d *disk) parent(p string, make_ bool) (int, error) {
	fd, err := at.OpenDir(d.root, ".")
	if err != nil || dirname(p) == "" {
		return fd, err
	}
	for _, part := range strings.Split(dirname(p), "/") {
		next, err := at.OpenDir(fd, part)
		if make_ && errors.Is(err, syscall.ENOENT) {
			if err = d.mkdir(fd, part); err == nil {
				next, err = at.OpenDir(fd, part)
			}
		}
		syscall.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// mkdir makes a directory with the owner of the one it lies in.
func (d *disk) mkdir(dir int, name string) error {
	if err := at.Mkdir(dir, name, 0o755); err != nil {
		return err
	}
	uid, gid := inherited(dir)
	return chown(dir, name, uid, gid)
}

// chown gives what root makes to its owner; others own what they make.
func chown(dir int, name string, uid, gid int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return at.Chown(dir, name, uid, gid)
}

func inherited(dir int) (uid, gid int) {
	var st syscall.Stat_t
	if syscall.Fstat(dir, &st) != nil {
		return -1, -1
	}
	return int(st.Uid), int(st.Gid)
}

// read returns the file or link at p; nil when there is none.
func (d *disk) read(p string) (*node, error) {
	dir, err := d.parent(p, false)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return nil, nil
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return d.blocked(p)
	case err != nil:
		return nil, err
	}
	defer syscall.Close(dir)
	name := path.Base(p)
	st, err := at.Stat(dir, name)
	if errors.Is(err, syscall.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := &node{perm: st.Mode & 0o777, uid: int(st.Uid), gid: int(st.Gid)}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		found.content, err = content(dir, name)
	case syscall.S_IFLNK:
		var target string
		target, err = at.Readlink(dir, name)
		found.link, found.perm, found.content = true, 0o644, []byte(target)
	case syscall.S_IFDIR:
		err = errDirectory
	default:
		err = errors.New("is neither a file nor a link")
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// blocked tells a path below a file (nothing is there) from one beyond a link (refused).
func (d *disk) blocked(p string) (*node, error) {
	for parent := dirname(p); parent != ""; parent = dirname(parent) {
		dir, err := d.parent(parent, false)
		if err != nil {
			continue
		}
		st, err := at.Stat(dir, path.Base(parent))
		syscall.Close(dir)
		if err == nil && st.Mode&syscall.S_IFMT == syscall.S_IFLNK {
			return nil, errBeyond
		}
		return nil, nil
	}
	return nil, nil
}

func content(dir int, name string) ([]byte, error) {
	fd, err := at.Open(dir, name, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("is larger than %d bytes", maxFile)
	}
	return data, err
}

func (n *node) equal(other *node) bool {
	if n == nil || other == nil {
		return n == other
	}
	return n.link == other.link && n.perm == other.perm && bytes.Equal(n.content, other.content)
}
