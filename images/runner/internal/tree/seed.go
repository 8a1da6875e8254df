package tree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"

	"stayer.dev/runner/internal/at"
)

// maxDepth bounds the descriptors that a copy holds open: two a level.
const maxDepth = 1000

// Copied counts what a copy did. Skipped names the special files that were left out.
type Copied struct {
	Files, Dirs, Links int
	Bytes              int64
	Skipped            []string
}

// Copy makes to an exact copy of from, owned by uid and gid: contents, permission bits, links as
// links, modification times. Special files are left out; setuid, setgid and sticky are dropped.
//
// What to held before is removed first, so that a copy killed midway is simply made again.
func Copy(from, to string, uid, gid int) (Copied, error) {
	c := copier{uid: uid, gid: gid}
	source, err := at.OpenRoot(from)
	if err != nil {
		return c.done, err
	}
	defer syscall.Close(source)
	if err := Wipe(to); err != nil {
		return c.done, err
	}
	target, err := at.OpenRoot(to)
	if err != nil {
		return c.done, err
	}
	defer syscall.Close(target)
	if err := c.dir(source, target, ".", 0); err != nil {
		return c.done, err
	}
	return c.done, c.finish(source, target)
}

type copier struct {
	uid, gid int
	done     Copied
}

func (c *copier) dir(source, target int, where string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: more than %d levels deep", where, maxDepth)
	}
	lister := at.NewLister(source)
	for {
		names, err := lister.Next()
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := c.entry(source, target, name, path.Join(where, name), depth); err != nil {
				return err
			}
		}
	}
}

func (c *copier) entry(source, target int, name, where string, depth int) error {
	st, err := at.Stat(source, name)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		return c.subdir(source, target, name, where, depth)
	case syscall.S_IFREG:
		err = c.file(source, target, name)
	case syscall.S_IFLNK:
		err = c.link(source, target, name, st)
	default:
		c.done.Skipped = append(c.done.Skipped, where)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

func (c *copier) subdir(source, target int, name, where string, depth int) error {
	from, err := at.OpenDir(source, name)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	defer syscall.Close(from)
	if err := at.Mkdir(target, name, 0o700); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	to, err := at.OpenDir(target, name)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	defer syscall.Close(to)
	c.done.Dirs++
	if err := c.dir(from, to, where, depth+1); err != nil {
		return err
	}
	return c.finish(from, to)
}

// finish gives a directory its owner, mode and time, after its content has been made.
func (c *copier) finish(from, to int) error {
	var st syscall.Stat_t
	if err := syscall.Fstat(from, &st); err != nil {
		return err
	}
	if err := syscall.Fchown(to, c.uid, c.gid); err != nil {
		return err
	}
	if err := syscall.Fchmod(to, st.Mode&0o777); err != nil {
		return err
	}
	return at.Chtimes(to, ".", st.Mtim)
}

func (c *copier) file(source, target int, name string) error {
	fd, err := at.Open(source, name, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	in := os.NewFile(uintptr(fd), name)
	defer in.Close()
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return errors.New("changed while it was copied")
	}
	out, err := at.Open(target, name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	written := os.NewFile(uintptr(out), name)
	n, err := io.Copy(written, in)
	c.done.Files++
	c.done.Bytes += n
	if err == nil {
		err = errors.Join(written.Chown(c.uid, c.gid), syscall.Fchmod(out, st.Mode&0o777))
	}
	if err = errors.Join(err, written.Close()); err != nil {
		return err
	}
	return at.Chtimes(target, name, st.Mtim)
}

func (c *copier) link(source, target int, name string, st syscall.Stat_t) error {
	to, err := at.Readlink(source, name)
	if err != nil {
		return err
	}
	c.done.Links++
	if err := at.Symlink(to, target, name); err != nil {
		return err
	}
	return errors.Join(at.Chown(target, name, c.uid, c.gid), at.Chtimes(target, name, st.Mtim))
}
