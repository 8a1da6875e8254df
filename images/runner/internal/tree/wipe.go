// Package tree empties and copies directory trees that may have been built to break such programs.
package tree

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"stayer.dev/runner/internal/at"
)

const removeParked = ".runner-wipe-"

// Wipe removes everything below path and keeps path itself. A missing path counts as empty.
//
// Directories found on the way are moved up into path and emptied there in turn. So neither depth
// nor path length matters, no recursion and at most two descriptors are needed, no link is
// followed, and memory stays bounded by one batch of names.
func Wipe(path string) error {
	root, err := at.OpenRoot(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer syscall.Close(root)
	w := wiper{root: root}
	for {
		found, err := w.pass(root)
		if err != nil {
			return fmt.Errorf("wipe %s: %w", path, err)
		}
		if !found {
			return nil
		}
	}
}

type wiper struct {
	root   int
	parked int
}

// pass empties dir once; it reports whether it saw any entry.
func (w *wiper) pass(dir int) (bool, error) {
	lister := at.NewLister(dir)
	if err := lister.Rewind(); err != nil {
		return false, err
	}
	found := false
	for {
		names, err := lister.Next()
		if err != nil || len(names) == 0 {
			return found, err
		}
		found = true
		for _, name := range names {
			if err := w.remove(dir, name); err != nil {
				return found, fmt.Errorf("%q: %w", name, err)
			}
		}
	}
}

func (w *wiper) remove(dir int, name string) error {
	err := at.Unlink(dir, name)
	switch {
	case err == nil || errors.Is(err, syscall.ENOENT):
		return nil
	case !errors.Is(err, syscall.EISDIR) && !errors.Is(err, syscall.EPERM):
		return err
	}
	if at.Rmdir(dir, name) == nil {
		return nil
	}
	if dir == w.root {
		return w.empty(name)
	}
	return w.park(dir, name)
}

// empty empties and removes a directory that lies directly in the root.
func (w *wiper) empty(name string) error {
	fd, err := at.OpenDir(w.root, name)
	if errors.Is(err, syscall.EACCES) {
		// Without CAP_DAC_OVERRIDE a mode of 000 stops even the owner, who may change it.
		if err = syscall.Fchmodat(w.root, name, 0o700, 0); err == nil {
			fd, err = at.OpenDir(w.root, name)
		}
	}
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	for {
		found, err := w.pass(fd)
		if err != nil {
			return err
		}
		if !found {
			return at.Rmdir(w.root, name)
		}
	}
}

// park moves a directory up into the root under a free name, where a later pass empties it.
func (w *wiper) park(dir int, name string) error {
	for try := 0; ; try++ {
		w.parked++
		err := at.Rename(dir, name, w.root, fmt.Sprintf("%s%d", removeParked, w.parked))
		if err == nil || try > 1<<20 {
			return err
		}
		taken := errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.ENOTEMPTY) ||
			errors.Is(err, syscall.ENOTDIR)
		if !taken {
			return err
		}
	}
}
