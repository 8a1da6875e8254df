package patch

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const devNull = "/dev/null"

var hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// Parse reads all file patches of a diff; text around them is passed over. The paths have lost
// their first `prefix` components. An empty diff holds no patches; text without any is an error.
func Parse(diff []byte, prefix int) ([]*File, error) {
	p := &parser{lines: split(diff), prefix: prefix}
	var files []*File
	for p.at < len(p.lines) {
		file, err := p.next()
		if err != nil {
			return nil, err
		}
		if file != nil {
			files = append(files, file)
		}
	}
	if len(files) == 0 && strings.TrimSpace(string(diff)) != "" {
		return nil, &Error{Text: "holds no diff"}
	}
	return files, nil
}

type parser struct {
	lines  [][]byte
	at     int
	prefix int
}

// line is the current one without its newline; "" at the end.
func (p *parser) line() string { return p.peek(0) }

func (p *parser) peek(ahead int) string {
	if p.at+ahead >= len(p.lines) {
		return ""
	}
	return strings.TrimSuffix(string(p.lines[p.at+ahead]), "\n")
}

func (p *parser) wrong(file, format string, args ...any) error {
	return &Error{File: file, Line: p.at + 1, Text: fmt.Sprintf(format, args...)}
}

// next reads one file patch, or passes over one line that starts none.
func (p *parser) next() (*File, error) {
	switch {
	case strings.HasPrefix(p.line(), "diff --git "):
		return p.git()
	case p.marker(0):
		return p.traditional()
	case hunkHeader.MatchString(p.line()):
		return nil, p.wrong("", "hunk without a file header")
	}
	p.at++
	return nil, nil
}

// marker reports whether `--- `, `+++ ` and a hunk follow.
func (p *parser) marker(ahead int) bool {
	return strings.HasPrefix(p.peek(ahead), "--- ") && strings.HasPrefix(p.peek(ahead+1), "+++ ") &&
		hunkHeader.MatchString(p.peek(ahead+2))
}

func (p *parser) traditional() (*File, error) {
	file := &File{Line: p.at + 1}
	if err := p.markers(file); err != nil {
		return nil, err
	}
	return file, p.hunks(file)
}

// markers reads the `--- ` and `+++ ` lines of a plain diff, the only source of its names.
func (p *parser) markers(file *File) error {
	before, after := markerName(p.line()[4:]), markerName(p.peek(1)[4:])
	oldName, oldOK := strip(before, p.prefix)
	newName, newOK := strip(after, p.prefix)
	switch {
	case before == devNull && newOK:
		file.Kind, file.New = Create, newName
	case after == devNull && oldOK:
		file.Kind, file.Old = Delete, oldName
	case oldOK && newOK && strings.HasPrefix(newName, oldName):
		file.Old, file.New = oldName, oldName
	case newOK:
		file.Old, file.New = newName, newName
	default:
		return p.wrong("", "no file name is left of %q and %q without their first %d components", before, after, p.prefix)
	}
	p.at += 2
	return nil
}

func (p *parser) git() (*File, error) {
	file := &File{Line: p.at + 1}
	name := gitNames(p.line()[len("diff --git "):], p.prefix)
	file.Old, file.New = name, name
	h := header{file: file}
	for p.at++; p.at < len(p.lines); p.at++ {
		more, err := h.read(p.line(), p.prefix)
		if err != nil {
			return nil, p.wrong(file.Path(), "%v", err)
		}
		if !more {
			break
		}
	}
	if err := p.body(&h); err != nil {
		return nil, err
	}
	if file.Old == "" && file.New == "" {
		return nil, &Error{Line: file.Line, Text: "git header without a file name"}
	}
	h.settle()
	return file, nil
}

// body reads what follows a git header: hunks, a binary patch or nothing.
func (p *parser) body(h *header) error {
	file := h.file
	switch line := p.line(); {
	case p.marker(0):
		if file.Old == "" {
			h.name(markerName(line[4:]), markerName(p.peek(1)[4:]), p.prefix)
		}
		p.at += 2
		return p.hunks(file)
	case line == "GIT binary patch":
		p.at++
		return p.binary(file, h.before, h.after)
	case strings.HasPrefix(line, "Binary files ") && strings.HasSuffix(line, " differ"):
		return p.wrong(file.Path(), "binary file without its data (made without --binary)")
	}
	return nil
}

// hunks reads all hunks of one file.
func (p *parser) hunks(file *File) error {
	for {
		found := hunkHeader.FindStringSubmatch(p.line())
		if found == nil {
			return nil
		}
		hunk := Hunk{Number: len(file.Hunks) + 1, Line: p.at + 1}
		numbers, err := parseNumbers(found[1:])
		if err != nil {
			return p.wrong(file.Path(), "%v", err)
		}
		hunk.OldStart, hunk.NewStart = numbers[0], numbers[2]
		p.at++
		if err := p.hunkLines(file, &hunk, numbers[1], numbers[3]); err != nil {
			return err
		}
		file.Hunks = append(file.Hunks, hunk)
	}
}

// parseNumbers reads start and length of both sides; a missing length is 1.
func parseNumbers(texts []string) ([4]int, error) {
	var numbers [4]int
	for i, text := range texts {
		if text == "" {
			numbers[i] = 1
			continue
		}
		value, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return numbers, fmt.Errorf("hunk header with the number %s", text)
		}
		numbers[i] = int(value)
	}
	return numbers, nil
}

func (p *parser) hunkLines(file *File, hunk *Hunk, before, after int) error {
	for before > 0 || after > 0 {
		if p.at >= len(p.lines) {
			return p.wrong(file.Path(), "the diff ends within hunk %d", hunk.Number)
		}
		line, err := hunkLine(p.lines[p.at])
		if err != nil {
			return p.wrong(file.Path(), "hunk %d: %v", hunk.Number, err)
		}
		if line.Op != '+' {
			before--
		}
		if line.Op != '-' {
			after--
		}
		if before < 0 || after < 0 {
			return p.wrong(file.Path(), "hunk %d has more lines than its header says", hunk.Number)
		}
		hunk.Lines = append(hunk.Lines, line)
		p.at++
		p.noNewline(hunk)
	}
	return nil
}

func hunkLine(raw []byte) (Line, error) {
	switch raw[0] {
	case ' ', '+', '-':
		return Line{raw[0], raw[1:]}, nil
	case '\n': // an empty context line that lost its space on the way
		return Line{' ', raw}, nil
	}
	return Line{}, fmt.Errorf("a line that starts with %s", quote(raw))
}

// noNewline takes the newline off the last line where `\ No newline at end of file` follows.
func (p *parser) noNewline(hunk *Hunk) {
	if !strings.HasPrefix(p.line(), `\ `) {
		return
	}
	last := &hunk.Lines[len(hunk.Lines)-1]
	if n := len(last.Text); n > 0 && last.Text[n-1] == '\n' {
		last.Text = last.Text[: n-1 : n-1]
	}
	p.at++
}
