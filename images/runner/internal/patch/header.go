package patch

import (
	"fmt"
	"strconv"
	"strings"
)

// header reads the extended lines of a git patch.
type header struct {
	file          *File
	before, after string // object names of the index line
}

// read takes one line; false when it belongs to the header no more.
func (h *header) read(line string, prefix int) (bool, error) {
	for _, known := range headerLines {
		if rest, ok := strings.CutPrefix(line, known.start); ok {
			return true, known.take(h, rest, prefix)
		}
	}
	return false, nil
}

var headerLines = []struct {
	start string
	take  func(h *header, rest string, prefix int) error
}{
	{"old mode ", func(h *header, rest string, _ int) error { return mode(rest, &h.file.OldMode) }},
	{"new mode ", func(h *header, rest string, _ int) error { return mode(rest, &h.file.NewMode) }},
	{"deleted file mode ", func(h *header, rest string, _ int) error {
		h.file.Kind = Delete
		return mode(rest, &h.file.OldMode)
	}},
	{"new file mode ", func(h *header, rest string, _ int) error {
		h.file.Kind = Create
		return mode(rest, &h.file.NewMode)
	}},
	{"rename from ", func(h *header, rest string, n int) error { return h.from(Rename, rest, n) }},
	{"rename to ", func(h *header, rest string, n int) error { return h.to(Rename, rest, n) }},
	{"rename old ", func(h *header, rest string, n int) error { return h.from(Rename, rest, n) }},
	{"rename new ", func(h *header, rest string, n int) error { return h.to(Rename, rest, n) }},
	{"copy from ", func(h *header, rest string, n int) error { return h.from(Copy, rest, n) }},
	{"copy to ", func(h *header, rest string, n int) error { return h.to(Copy, rest, n) }},
	{"similarity index ", func(*header, string, int) error { return nil }},
	{"dissimilarity index ", func(*header, string, int) error { return nil }},
	{"index ", func(h *header, rest string, _ int) error { return h.index(rest) }},
}

func mode(text string, into *uint32) error {
	value, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32)
	if err != nil {
		return fmt.Errorf("mode %q", text)
	}
	switch value &^ 0o7777 {
	case 0o100000, 0o120000:
		*into = uint32(value)
		return nil
	}
	return fmt.Errorf("mode %q: only files and symbolic links can be patched", text)
}

// extendedName reads a name of a rename or copy line: those have no a/ or b/ in front.
func extendedName(text string, prefix int) (string, error) {
	if name, _, ok := unquote(text); ok {
		text = name
	}
	name, ok := strip(text, max(prefix-1, 0))
	if !ok {
		return "", fmt.Errorf("no file name is left of %q", text)
	}
	return name, nil
}

func (h *header) from(kind Kind, text string, prefix int) (err error) {
	h.file.Kind = kind
	h.file.Old, err = extendedName(text, prefix)
	return err
}

func (h *header) to(kind Kind, text string, prefix int) (err error) {
	h.file.Kind = kind
	h.file.New, err = extendedName(text, prefix)
	return err
}

func (h *header) index(rest string) error {
	names, mode_, hasMode := strings.Cut(rest, " ")
	h.before, h.after, _ = strings.Cut(names, "..")
	if hasMode && h.file.OldMode == 0 {
		return mode(mode_, &h.file.OldMode)
	}
	return nil
}

// name sets the names from marker lines where the `diff --git` line gave none.
func (h *header) name(before, after string, prefix int) {
	oldName, _ := strip(before, prefix)
	newName, _ := strip(after, prefix)
	if before == devNull {
		oldName = newName
	}
	if after == devNull {
		newName = oldName
	}
	h.file.Old, h.file.New = oldName, newName
}

// settle brings names and modes in line with what the patch does.
func (h *header) settle() {
	file := h.file
	switch file.Kind {
	case Create:
		file.Old = ""
	case Delete:
		file.New = ""
	}
	if file.NewMode == 0 && file.Kind != Delete {
		file.NewMode = file.OldMode
	}
}
