package patch

import "bytes"

// image is a file's content by lines while hunks are applied to it.
type image struct {
	lines   [][]byte
	patched []bool // lines that a hunk has written or matched: no later hunk may match them
}

func newImage(content []byte) *image {
	lines := split(content)
	return &image{lines: lines, patched: make([]bool, len(lines))}
}

// split cuts content after each newline; the last line may lack one.
func split(content []byte) [][]byte {
	var lines [][]byte
	for len(content) > 0 {
		end := bytes.IndexByte(content, '\n') + 1
		if end == 0 {
			end = len(content)
		}
		lines = append(lines, content[:end:end])
		content = content[end:]
	}
	return lines
}

// Text applies the hunks of f to content.
func (f *File) Text(content []byte) ([]byte, error) {
	img := newImage(content)
	for i := range f.Hunks {
		hunk := &f.Hunks[i]
		if !img.apply(hunk) {
			return nil, &Error{f.Path(), hunk.Number, hunk.Line, "does not apply: " + img.mismatch(hunk)}
		}
	}
	return bytes.Join(img.lines, nil), nil
}

func (img *image) apply(h *Hunk) bool {
	before, after := h.side('+'), h.side('-')
	// A hunk that says it starts the file, or has no context after it, must lie at that end.
	atStart := h.OldStart <= 1
	atEnd := h.trailing() == 0
	at := img.find(before, max(h.NewStart-1, 0), atStart, atEnd)
	if at < 0 {
		return false
	}
	rest := at + len(before)
	written := make([]bool, len(after))
	for i := range written {
		written[i] = true
	}
	img.lines = splice(img.lines, at, rest, after)
	img.patched = splice(img.patched, at, rest, written)
	return true
}

func splice[T any](list []T, from, to int, middle []T) []T {
	result := make([]T, 0, len(list)-(to-from)+len(middle))
	result = append(result, list[:from]...)
	result = append(result, middle...)
	return append(result, list[to:]...)
}

// find returns where before matches: at guess, else at the nearest place, below before above (as git).
func (img *image) find(before [][]byte, guess int, atStart, atEnd bool) int {
	last := len(img.lines) - len(before)
	if last < 0 {
		return -1
	}
	if atStart {
		guess = 0
	} else if atEnd {
		guess = last
	}
	guess = min(guess, last)
	for distance := 0; guess-distance >= 0 || guess+distance <= last; distance++ {
		for _, at := range [2]int{guess + distance, guess - distance} {
			if at >= 0 && at <= last && (!atStart || at == 0) && (!atEnd || at == last) && img.matches(before, at) {
				return at
			}
		}
		if atStart || atEnd {
			return -1
		}
	}
	return -1
}

func (img *image) matches(before [][]byte, at int) bool {
	for i, line := range before {
		if img.patched[at+i] || !bytes.Equal(img.lines[at+i], line) {
			return false
		}
	}
	return true
}

// mismatch says in a few words what stands where the hunk was expected.
func (img *image) mismatch(h *Hunk) string {
	before := h.side('+')
	at := max(h.NewStart-1, 0)
	for i, line := range before {
		if at+i >= len(img.lines) {
			return "the file ends before " + quote(line)
		}
		if !bytes.Equal(img.lines[at+i], line) {
			return "expected " + quote(line) + ", found " + quote(img.lines[at+i])
		}
	}
	if len(before) == 0 && len(img.lines) > 0 {
		return "expected an empty file"
	}
	return "it has to lie at the start or end of the file, or was applied already"
}
