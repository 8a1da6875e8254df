// Package patch reads unified and git diffs and applies them to file contents.
//
// It holds text only: no paths are opened here. Its rules are those of `git apply` without fuzz.
package patch

import "fmt"

// Kind says what a file patch does to its path.
type Kind int

// Kinds of file patch.
const (
	Modify Kind = iota
	Create
	Delete
	Rename
	Copy
)

// File is the patch of one file.
type File struct {
	Kind             Kind
	Old, New         string // paths with the prefix stripped; equal unless renamed or copied
	OldMode, NewMode uint32 // as git writes them (100644, 100755, 120000); 0 = not said
	Hunks            []Hunk
	Binary           *Binary
	Line             int // of its header in the diff
}

// Path names the file in messages.
func (f *File) Path() string {
	if f.New != "" {
		return f.New
	}
	return f.Old
}

// Hunk is one piece of a text patch. Lines keep their newline; the last one may lack it.
type Hunk struct {
	OldStart, NewStart int
	Lines              []Line
	Number, Line       int // its number in the file patch, from 1, and its line in the diff
}

// Line of a hunk: Op is ' ', '-' or '+'.
type Line struct {
	Op   byte
	Text []byte
}

// side returns the lines of the image before (drop '+') or after (drop '-').
func (h *Hunk) side(drop byte) [][]byte {
	lines := make([][]byte, 0, len(h.Lines))
	for _, line := range h.Lines {
		if line.Op != drop {
			lines = append(lines, line.Text)
		}
	}
	return lines
}

// trailing counts the context lines at the end.
func (h *Hunk) trailing() int {
	count := 0
	for i := len(h.Lines) - 1; i >= 0 && h.Lines[i].Op == ' '; i-- {
		count++
	}
	return count
}

// Error is a problem of a diff or of its application, at a file and where known at a hunk.
type Error struct {
	File string
	Hunk int
	Line int // in the diff
	Text string
}

func (e *Error) Error() string {
	where := ""
	if e.File != "" {
		where = e.File + ": "
	}
	if e.Hunk > 0 {
		where += fmt.Sprintf("hunk %d: ", e.Hunk)
	}
	if e.Line > 0 {
		return fmt.Sprintf("%s%s (line %d of the diff)", where, e.Text, e.Line)
	}
	return where + e.Text
}

// Reverse turns patches into those that undo them, in reverse order.
func Reverse(files []*File) []*File {
	reversed := make([]*File, 0, len(files))
	for i := len(files) - 1; i >= 0; i-- {
		reversed = append(reversed, files[i].reverse())
	}
	return reversed
}

func (f *File) reverse() *File {
	undo := *f
	undo.Old, undo.New = f.New, f.Old
	undo.OldMode, undo.NewMode = f.NewMode, f.OldMode
	switch f.Kind {
	case Create:
		undo.Kind = Delete
	case Delete:
		undo.Kind = Create
	case Copy:
		undo.Kind = Delete
	}
	undo.Hunks = make([]Hunk, len(f.Hunks))
	for i, hunk := range f.Hunks {
		undo.Hunks[i] = hunk.reverse()
	}
	if f.Binary != nil {
		undo.Binary = f.Binary.reverse()
	}
	return &undo
}

func (h Hunk) reverse() Hunk {
	opposite := map[byte]byte{' ': ' ', '-': '+', '+': '-'}
	lines := make([]Line, len(h.Lines))
	for i, line := range h.Lines {
		lines[i] = Line{opposite[line.Op], line.Text}
	}
	h.OldStart, h.NewStart, h.Lines = h.NewStart, h.OldStart, lines
	return h
}
