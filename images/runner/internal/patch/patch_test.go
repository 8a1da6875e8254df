package patch

import (
	"bytes"
	"strings"
	"testing"
)

func TestPathsThatLeaveTheDirectoryAreRefused(t *testing.T) {
	for _, path := range []string{"", "/etc/passwd", "../x", "a/../b", "a/./b", "a//b", "a/", ".git/config", "sub/.Git/hooks", "a\x00b"} {
		if CheckPath(path) == nil {
			t.Errorf("%q was accepted", path)
		}
	}
	for _, path := range []string{"a", "a/b", ".gitignore", "..a", "a..b/c", "-rf", "a\nb"} {
		if err := CheckPath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestNamesLoseTheirPrefix(t *testing.T) {
	for _, test := range []struct {
		prefix int
		want   string
	}{{0, "b/dir/f"}, {1, "dir/f"}, {2, "f"}} {
		files, err := Parse([]byte("--- a/dir/f\n+++ b/dir/f\n@@ -1 +1 @@\n-a\n+b\n"), test.prefix)
		if err != nil || files[0].New != test.want {
			t.Errorf("-p%d: %v %v", test.prefix, files, err)
		}
	}
	if _, err := Parse([]byte("--- a/dir/f\n+++ b/dir/f\n@@ -1 +1 @@\n-a\n+b\n"), 3); err == nil {
		t.Error("a name without rest was accepted")
	}
}

func TestGitHeaderNamesBothSides(t *testing.T) {
	for line, want := range map[string]string{
		"a/x b/x":                 "x",
		"a/x y z b/x y z":         "x y z",
		"a/x b/y":                 "",
		`"a/t\tb" "b/t\tb"`:       "t\tb",
		`a/x "b/x"`:               "x",
		"a/b/a b/b/a":             "b/a",
		"a/x b/x b/x b/x":         "x b/x",
		`"a/unfinished b/unfinis`: "",
	} {
		if found := gitNames(line, 1); found != want {
			t.Errorf("%q: wanted %q, found %q", line, want, found)
		}
	}
}

func TestEqualSplitsChooseTheSameNameOnBothSides(t *testing.T) {
	name := "d/" + strings.Repeat("x ", 5) + "x"
	if found := gitNames("a/"+name+" b/"+name, 1); found != name {
		t.Fatalf("%q", found)
	}
}

func TestDamagedDeltasAreRefused(t *testing.T) {
	base := []byte("0123456789")
	good := []byte{10, 5, 0x91, 2, 3, 2, 'x', 'y'} // copy 3 bytes from 2, insert "xy"
	if result, err := applyDelta(base, good); err != nil || string(result) != "234xy" {
		t.Fatalf("%q %v", result, err)
	}
	for name, delta := range map[string][]byte{
		"nothing":         {},
		"other base":      {11, 5, 0x91, 2, 3, 2, 'x', 'y'},
		"copy outside":    {10, 5, 0x91, 9, 5},
		"insert cut off":  {10, 5, 5, 'x'},
		"copy cut off":    {10, 5, 0x91},
		"reserved op":     {10, 5, 0},
		"too little":      {10, 6, 0x91, 2, 3, 2, 'x', 'y'},
		"too much":        {10, 4, 0x91, 2, 3, 2, 'x', 'y'},
		"endless numbers": bytes.Repeat([]byte{0xff}, 20),
		"giant":           {10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x91, 2, 3},
	} {
		if result, err := applyDelta(base, delta); err == nil {
			t.Errorf("%s gave %q", name, result)
		}
	}
}

func TestBinaryPatchesNeedTheirExactContent(t *testing.T) {
	binary := &Binary{Before: strings.Repeat("1", 40), After: strings.Repeat("2", 40), forward: &piece{data: []byte("x")}}
	if _, err := binary.Apply([]byte("other")); err == nil || !strings.Contains(err.Error(), "expected content 111111111111") {
		t.Error(err)
	}
	binary.Before = "1234567"
	if _, err := binary.Apply(nil); err == nil || !strings.Contains(err.Error(), "full index") {
		t.Error(err)
	}
	if _, err := binary.reverse().Apply(nil); err == nil || !strings.Contains(err.Error(), "cannot be reversed") {
		t.Error(err)
	}
}
