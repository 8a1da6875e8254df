package apply

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"stayer.dev/runner/internal/at"
)

// commit brings every path of next to its state. New contents are first written beside, under names
// of their own: when that fails nothing has changed. A failure after that is undone from before.
func (d *disk) commit(before, next map[string]*node) error {
	paths := changed(before, next)
	staged, err := d.stage(paths, next)
	defer func() {
		for _, name := range staged {
			_ = at.Unlink(d.root, name)
		}
	}()
	if err != nil {
		return err
	}
	if err := d.move(paths, next, staged); err != nil {
		return errors.Join(err, d.undo(paths, before))
	}
	return nil
}

// changed lists the paths whose state differs, in a fixed order.
func changed(before, next map[string]*node) []string {
	var paths []string
	for p, state := range next {
		if !state.equal(before[p]) {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// stage writes the new contents into the root directory under names that nobody else uses.
func (d *disk) stage(paths []string, next map[string]*node) (map[string]string, error) {
	staged := map[string]string{}
	for i, p := range paths {
		if next[p] == nil {
			continue
		}
		name := fmt.Sprintf(".runner-apply-%d-%d", os.Getpid(), i)
		staged[p] = name
		if err := d.write(name, next[p]); err != nil {
			return staged, fmt.Errorf("%s: %w", p, err)
		}
	}
	return staged, nil
}

func (d *disk) write(name string, n *node) error {
	_ = at.Unlink(d.root, name)
	if n.link {
		return at.Symlink(string(n.content), d.root, name)
	}
	fd, err := at.Open(d.root, name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	_, err = file.Write(n.content)
	return errors.Join(err, file.Chmod(os.FileMode(n.perm)), file.Close())
}

// move removes what goes and renames what comes; removals first, as a directory may give way to a
// file or the other way round.
func (d *disk) move(paths []string, next map[string]*node, staged map[string]string) error {
	for _, p := range paths {
		if next[p] != nil {
			continue
		}
		if err := d.remove(p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	for _, p := range paths {
		if next[p] == nil {
			continue
		}
		if err := d.install(staged[p], p, next[p]); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		delete(staged, p)
	}
	return nil
}

func (d *disk) install(name, p string, n *node) error {
	dir, err := d.parent(p, true)
	if err != nil {
		return err
	}
	defer syscall.Close(dir)
	uid, gid := n.uid, n.gid
	if uid < 0 {
		uid, gid = inherited(dir)
	}
	if err := chown(d.root, name, uid, gid); err != nil {
		return err
	}
	return at.Rename(d.root, name, dir, path.Base(p))
}

// remove deletes p and then the directories above it that this has emptied.
func (d *disk) remove(p string) error {
	dir, err := d.parent(p, false)
	if err != nil {
		return err
	}
	err = at.Unlink(dir, path.Base(p))
	syscall.Close(dir)
	if err != nil {
		return err
	}
	for parent := dirname(p); parent != ""; parent = dirname(parent) {
		dir, err := d.parent(parent, false)
		if err != nil {
			return err
		}
		err = at.Rmdir(dir, path.Base(parent))
		syscall.Close(dir)
		if err != nil {
			return nil // not empty: it stays
		}
	}
	return nil
}

// undo brings every path back to what it was. Paths made deeper go first, so that a directory that
// replaced a file is empty when the file comes back.
func (d *disk) undo(paths []string, before map[string]*node) error {
	deepest := slices.Clone(paths)
	slices.SortFunc(deepest, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	for _, p := range deepest {
		if before[p] == nil {
			_ = d.remove(p)
		}
	}
	var problems []error
	for i, p := range paths {
		if before[p] == nil {
			continue
		}
		name := fmt.Sprintf(".runner-undo-%d-%d", os.Getpid(), i)
		err := d.write(name, before[p])
		if err == nil {
			err = d.install(name, p, before[p])
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s could not be brought back: %w", p, err))
			_ = at.Unlink(d.root, name)
		}
	}
	return errors.Join(problems...)
}
