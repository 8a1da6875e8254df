// Package apply brings patches into a directory: all of them or none, nowhere outside, through no link.
package apply

import (
	"errors"
	"fmt"
	"syscall"

	"stayer.dev/runner/internal/at"
	"stayer.dev/runner/internal/patch"
)

// Extra is a file that is written in the same step, replacing what is there.
type Extra struct {
	Path    string
	Content []byte
	Mode    uint32 // permission bits; 0 = those of the replaced file, else 0644
}

// Apply applies files to the directory at dir. With check nothing is written.
//
// Everything is worked out in memory first, so a patch that does not apply changes nothing; trouble
// while writing (a full disk) is undone.
func Apply(dir string, files []*patch.File, extras []Extra, check bool) error {
	disk, err := openDisk(dir)
	if err != nil {
		return err
	}
	defer disk.close()
	p := plan{disk: disk, next: map[string]*node{}, before: map[string]*node{}, leaving: leaving(files)}
	for _, file := range files {
		if err := p.file(file); err != nil {
			return located(file, err)
		}
	}
	for _, extra := range extras {
		if err := p.extra(extra); err != nil {
			return fmt.Errorf("%s: %w", extra.Path, err)
		}
	}
	if err := p.shape(); err != nil {
		return err
	}
	if check {
		return nil
	}
	return disk.commit(p.before, p.next)
}

// located gives an error its file where it has none yet.
func located(file *patch.File, err error) error {
	var known *patch.Error
	if errors.As(err, &known) {
		return err
	}
	return &patch.Error{File: file.Path(), Line: file.Line, Text: err.Error()}
}

// leaving names the paths that some patch moves away or deletes: another one may take their place.
func leaving(files []*patch.File) map[string]bool {
	paths := map[string]bool{}
	for _, file := range files {
		if file.Kind == patch.Delete || file.Kind == patch.Rename {
			paths[file.Old] = true
		}
	}
	return paths
}

// node is a file or symbolic link; a nil *node stands for nothing.
type node struct {
	link     bool
	perm     uint32
	content  []byte // of a link: its target
	uid, gid int
}

// mode is the node's mode as git would write it.
func (n *node) mode() uint32 {
	switch {
	case n.link:
		return modeLink
	case n.perm&0o100 != 0:
		return modeExecutable
	}
	return modeFile
}

const (
	modeFile       = 0o100644
	modeExecutable = 0o100755
	modeLink       = 0o120000
	typeBits       = 0o170000
)

// plan is the state after the patches so far, as a layer over the disk.
type plan struct {
	disk    *disk
	next    map[string]*node // path -> wanted state; nil = removed
	before  map[string]*node // the same paths on disk
	leaving map[string]bool
}

// original is the state on disk.
func (p *plan) original(path string) (*node, error) {
	if known, ok := p.before[path]; ok {
		return known, nil
	}
	found, err := p.disk.read(path)
	if err == nil {
		p.before[path] = found
	}
	return found, err
}

// current is the state after the patches so far.
func (p *plan) current(path string) (*node, error) {
	if state, ok := p.next[path]; ok {
		return state, nil
	}
	return p.original(path)
}

func (p *plan) file(file *patch.File) error {
	for _, path := range []string{file.Old, file.New} {
		if path == "" {
			continue
		}
		if err := patch.CheckPath(path); err != nil {
			return err
		}
	}
	source, err := p.source(file)
	if err != nil {
		return err
	}
	result, err := change(file, source)
	if err != nil {
		return err
	}
	return p.place(file, result)
}

// source is what the patch starts from. Renames and copies start from the disk, as git's order of
// patches means nothing; others see what earlier patches of the same diff did.
func (p *plan) source(file *patch.File) (*node, error) {
	if file.Kind == patch.Create {
		return nil, nil
	}
	look := p.current
	if file.Kind == patch.Rename || file.Kind == patch.Copy {
		look = p.original
	}
	found, err := look(file.Old)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fmt.Errorf("%s does not exist", file.Old)
	}
	if file.OldMode != 0 && found.mode()&typeBits != file.OldMode&typeBits {
		return nil, fmt.Errorf("%s has the wrong type (mode %o, expected %o)", file.Old, found.mode(), file.OldMode)
	}
	return found, nil
}

// change computes the new content and mode.
func change(file *patch.File, source *node) (*node, error) {
	var content []byte
	if source != nil {
		content = source.content
	}
	var err error
	if file.Binary != nil {
		content, err = file.Binary.Apply(content)
	} else {
		content, err = file.Text(content)
	}
	if err != nil {
		return nil, err
	}
	if file.Kind == patch.Delete {
		if len(content) > 0 {
			return nil, fmt.Errorf("is not empty after the lines that the patch removes")
		}
		return nil, nil
	}
	result := &node{perm: 0o644, content: content, uid: -1, gid: -1}
	if source != nil {
		result.perm, result.link, result.uid, result.gid = source.perm, source.link, source.uid, source.gid
	}
	result.set(file.NewMode)
	return result, nil
}

// set takes over a mode of git; permission bits it does not speak of stay.
func (n *node) set(mode uint32) {
	if mode == 0 {
		return
	}
	n.link = mode&typeBits == modeLink
	executable := mode&0o100 != 0
	switch {
	case executable && n.perm&0o100 == 0:
		n.perm |= n.perm >> 2 & 0o111
	case !executable:
		n.perm &^= 0o111
	}
}

// place puts the result where it belongs.
func (p *plan) place(file *patch.File, result *node) error {
	if file.Kind != patch.Modify && file.Kind != patch.Delete {
		taken, err := p.current(file.New)
		if err != nil && !errors.Is(err, errDirectory) {
			return err
		}
		if _, written := p.next[file.New]; taken != nil && (written || !p.leaving[file.New]) {
			return fmt.Errorf("%s exists already", file.New)
		}
	}
	if file.Kind == patch.Delete || file.Kind == patch.Rename {
		if _, written := p.next[file.Old]; !written || file.Kind == patch.Delete {
			p.next[file.Old] = nil
		}
	}
	if result != nil {
		p.next[file.New] = result
	}
	return nil
}

func (p *plan) extra(extra Extra) error {
	if err := patch.CheckPath(extra.Path); err != nil {
		return err
	}
	found, err := p.current(extra.Path)
	if err != nil {
		return err
	}
	result := &node{perm: 0o644, content: extra.Content, uid: -1, gid: -1}
	if found != nil && !found.link {
		result.perm, result.uid, result.gid = found.perm, found.uid, found.gid
	}
	if extra.Mode != 0 {
		result.perm = extra.Mode
	}
	p.next[extra.Path] = result
	return nil
}

// shape checks that no path lies below what will be a file or link, and that a directory whose place
// is wanted will be empty.
func (p *plan) shape() error {
	for path, state := range p.next {
		if state == nil {
			continue
		}
		if err := p.vacant(path); err != nil {
			return &patch.Error{File: path, Text: err.Error()}
		}
		for parent := dirname(path); parent != ""; parent = dirname(parent) {
			above, err := p.current(parent)
			if err != nil && !errors.Is(err, errDirectory) {
				return &patch.Error{File: path, Text: err.Error()}
			}
			if err == nil && above != nil {
				return &patch.Error{File: path, Text: parent + " is no directory"}
			}
		}
	}
	return nil
}

// vacant checks that a directory at path holds only files that go.
func (p *plan) vacant(path string) error {
	if _, err := p.original(path); !errors.Is(err, errDirectory) {
		return nil
	}
	dir, err := p.disk.parent(path+"/x", false)
	if err != nil {
		return err
	}
	defer syscall.Close(dir)
	lister := at.NewLister(dir)
	for {
		names, err := lister.Next()
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			below := path + "/" + name
			if state, planned := p.next[below]; planned && state == nil {
				continue
			}
			if _, err := p.original(below); !errors.Is(err, errDirectory) {
				return errDirectory
			}
			if err := p.vacant(below); err != nil {
				return err
			}
		}
	}
}
