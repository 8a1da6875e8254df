package patch

import (
	"fmt"
	"strconv"
	"strings"
)

// quote shows a piece of a file in a message: on one line, printable and short.
func quote(text []byte) string {
	const longest = 80
	s := strings.TrimSuffix(string(text), "\n")
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return strconv.Quote(s)
}

// unquote reads a C-style quoted name as git writes it and returns what follows it.
func unquote(s string) (name, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return "", s, false
	}
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return out.String(), s[i+1:], true
		case '\\':
			b, used := escape(s[i+1:])
			if used == 0 {
				return "", s, false
			}
			out.WriteByte(b)
			i += used
		default:
			out.WriteByte(s[i])
		}
	}
	return "", s, false
}

// escape reads what follows a backslash; used = 0 when it is no escape.
func escape(s string) (b byte, used int) {
	if s == "" {
		return 0, 0
	}
	if i := strings.IndexByte(`abtnvfr"\`, s[0]); i >= 0 {
		return "\a\b\t\n\v\f\r\"\\"[i], 1
	}
	if len(s) < 3 {
		return 0, 0
	}
	value, err := strconv.ParseUint(s[:3], 8, 8)
	if err != nil {
		return 0, 0
	}
	return byte(value), 3
}

// strip removes n leading components; false when the name has fewer.
func strip(name string, n int) (string, bool) {
	for ; n > 0; n-- {
		_, rest, found := strings.Cut(name, "/")
		if !found {
			return "", false
		}
		name = strings.TrimLeft(rest, "/")
	}
	return name, name != ""
}

// markerName reads the name of a `--- ` or `+++ ` line: up to a tab where there is one.
func markerName(s string) string {
	if name, _, ok := unquote(s); ok {
		return name
	}
	name, _, _ := strings.Cut(s, "\t")
	return strings.TrimRight(name, " \r")
}

// gitNames finds the one name in the rest of a `diff --git` line. A line with two different names
// gives none: then rename, copy or marker lines must name them.
func gitNames(s string, n int) string {
	if first, rest, ok := unquote(s); ok {
		second := strings.TrimPrefix(rest, " ")
		if name, _, ok := unquote(second); ok {
			second = name
		}
		return same(first, second, n)
	}
	for i := 0; i < len(s); i++ {
		if s[i] != ' ' {
			continue
		}
		second := s[i+1:]
		if name, _, ok := unquote(second); ok {
			second = name
		}
		if name := same(s[:i], second, n); name != "" {
			return name
		}
	}
	return ""
}

func same(first, second string, n int) string {
	a, okA := strip(first, n)
	b, okB := strip(second, n)
	if okA && okB && a == b {
		return a
	}
	return ""
}

// CheckPath refuses a path that leaves the directory it is applied in or names git's own files.
func CheckPath(path string) error {
	if path == "" || strings.HasPrefix(path, "/") || strings.ContainsRune(path, 0) {
		return fmt.Errorf("path %q is not relative", path)
	}
	for _, part := range strings.Split(path, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("path %q has a component %q", path, part)
		}
		if strings.EqualFold(part, ".git") {
			return fmt.Errorf("path %q lies in a git directory", path)
		}
	}
	return nil
}
