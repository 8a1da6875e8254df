package apply

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"stayer.dev/runner/internal/patch"
)

// tree makes files; a content that starts with "-> " is a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	must(t, os.Mkdir(dir, 0o755))
	for name, content := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if target, link := strings.CutPrefix(content, "-> "); link {
			must(t, os.Symlink(target, path))
			continue
		}
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

func run(dir, diff string, reverse, check bool, extras ...Extra) error {
	files, err := patch.Parse([]byte(diff), 1)
	if err != nil {
		return err
	}
	if reverse {
		files = patch.Reverse(files)
	}
	return Apply(dir, files, extras, check)
}

const edit = `--- a/f
+++ b/f
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
`

const addition = `diff --git a/sub/new b/sub/new
new file mode 100755
--- /dev/null
+++ b/sub/new
@@ -0,0 +1 @@
+hello
`

func TestWhatDoesNotApplyIsNamedAndChangesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		diff  string
		want  []string
	}{
		"other line":      {map[string]string{"f": "one\n2\nthree\n"}, addition + edit, []string{"f: hunk 1:", `expected "two", found "2"`, "line 9 of the diff"}},
		"file too short":  {map[string]string{"f": "one\n"}, edit, []string{"f: hunk 1:", `the file ends before "two"`}},
		"no such file":    {nil, edit, []string{"f: f does not exist"}},
		"exists already":  {map[string]string{"sub/new": ""}, addition, []string{"sub/new: sub/new exists already"}},
		"applied already": {map[string]string{"f": "one\nTWO\nthree\n"}, edit, []string{"f: hunk 1:", `expected "two", found "TWO"`}},
		"second hunk": {map[string]string{"f": "a\nb\nc\nd\ne\nf\ng\nX\n"},
			"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -6,3 +6,3 @@\n f\n g\n-h\n+H\n", []string{"f: hunk 2:", `expected "h", found "X"`}},
		"file in the way":       {map[string]string{"sub": "file"}, addition, []string{"sub/new: sub is no directory"}},
		"directory in the way":  {map[string]string{"sub/new/x": ""}, addition, []string{"sub/new: is a directory"}},
		"parent is a link":      {map[string]string{"sub": "-> /tmp"}, addition, []string{"sub/new:", "symbolic link"}},
		"file is a link":        {map[string]string{"f": "-> /etc/passwd"}, edit, []string{"f: hunk 1"}},
		"link on the way":       {map[string]string{"real/f": "x\n", "l": "-> real"}, strings.ReplaceAll(edit, "/f", "/l/f"), []string{"l/f:", "symbolic link"}},
		"leaves the directory":  {nil, strings.ReplaceAll(addition, "sub/new", "../new"), []string{`component ".."`}},
		"git's own":             {nil, strings.ReplaceAll(addition, "sub/new", ".GIT/hooks/x"), []string{"git directory"}},
		"cut off":               {map[string]string{"f": "one\ntwo\nthree\n"}, edit[:len(edit)-7], []string{"f:", "ends within hunk 1"}},
		"too many lines":        {map[string]string{"f": "one\ntwo\nthree\n"}, strings.Replace(edit, "+1,3", "+1,2", 1), []string{"hunk 1", "more lines than its header says"}},
		"no header":             {nil, edit[len("--- a/f\n+++ b/f\n"):], []string{"hunk without a file header"}},
		"no diff":               {nil, "hello\n", []string{"holds no diff"}},
		"binary without data":   {map[string]string{"f": "x"}, "diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n", []string{"f:", "without its data"}},
		"submodule":             {nil, "diff --git a/m b/m\nnew file mode 160000\n", []string{"m:", "160000"}},
		"wrong type":            {map[string]string{"f": "-> x"}, "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", []string{"f:", "wrong type"}},
		"delete leaves content": {map[string]string{"f": "one\ntwo\n"}, "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", []string{"f:"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, test.files)
			before := listing(t, dir)
			err := run(dir, test.diff, false, false, Extra{Path: "requirement_patches/u.diff", Content: []byte("x")})
			if err == nil {
				t.Fatal("it applied")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("wanted %q in: %v", want, err)
				}
			}
			if after := listing(t, dir); after != before {
				t.Fatalf("changed to\n%s", after)
			}
		})
	}
}

func TestDiffsThatApply(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		diff  string
		want  map[string]string
	}{
		"empty diff":     {map[string]string{"f": "x"}, "", map[string]string{"f": "x"}},
		"text around":    {map[string]string{"f": "one\ntwo\nthree\n"}, "Subject: hi\n\n" + edit + "-- \n2.39\n", map[string]string{"f": "one\nTWO\nthree\n"}},
		"moved down":     {map[string]string{"f": "x\ny\none\ntwo\nthree\nfour\n"}, strings.Replace(edit, "-1,3 +1,3", "-2,3 +2,3", 1) + "", nil},
		"no newline":     {map[string]string{"f": "one"}, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+two\n\\ No newline at end of file\n", map[string]string{"f": "two"}},
		"newline comes":  {map[string]string{"f": "one"}, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+one\n", map[string]string{"f": "one\n"}},
		"CRLF":           {map[string]string{"f": "one\r\ntwo\r\n"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n+2\r\n", map[string]string{"f": "one\r\n2\r\n"}},
		"stripped space": {map[string]string{"f": "a\n\nb\n"}, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-a\n+A\n\n b\n", map[string]string{"f": "A\n\nb\n"}},
		"time stamps":    {map[string]string{"f": "one\ntwo\nthree\n"}, strings.NewReplacer("a/f", "a/f\t2020-01-01 00:00:00", "b/f", "b/f\t2021-01-01").Replace(edit), map[string]string{"f": "one\nTWO\nthree\n"}},
		"two in a row":   {map[string]string{"f": "one\ntwo\nthree\n"}, edit + strings.NewReplacer("-two", "-TWO", "+TWO", "+2").Replace(edit), map[string]string{"f": "one\n2\nthree\n"}},
		"swap": {map[string]string{"a": "A\n", "b": "B\n"},
			"diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\ndiff --git a/b b/a\nsimilarity index 100%\nrename from b\nrename to a\n",
			map[string]string{"a": "B\n", "b": "A\n"}},
		"link made": {nil, "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+over/there\n\\ No newline at end of file\n", map[string]string{"l": "-> over/there"}},
		"file to directory": {map[string]string{"x": "one\n"},
			"diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\ndiff --git a/x/y b/x/y\nnew file mode 100644\n--- /dev/null\n+++ b/x/y\n@@ -0,0 +1 @@\n+two\n",
			map[string]string{"x/y": "two\n"}},
		"directory to file": {map[string]string{"x/y": "one\n"},
			"diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+two\ndiff --git a/x/y b/x/y\ndeleted file mode 100644\n--- a/x/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n",
			map[string]string{"x": "two\n"}},
		"quoted name": {nil, "diff --git \"a/a\\tb\\303\\251\" \"b/a\\tb\\303\\251\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/a\\tb\\303\\251\"\n@@ -0,0 +1 @@\n+x\n", map[string]string{"a\tbé": "x\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, test.files)
			err := run(dir, test.diff, false, false)
			if test.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if found, want := listing(t, dir), listing(t, tree(t, test.want)); found != want {
				t.Fatalf("wanted\n%s\nfound\n%s", want, found)
			}
		})
	}
}

func TestReverseUndoesEverything(t *testing.T) {
	dir := tree(t, map[string]string{"f": "one\ntwo\nthree\n"})
	before := listing(t, dir)
	must(t, run(dir, addition+edit, false, false))
	must(t, run(dir, addition+edit, true, false))
	if after := listing(t, dir); after != before {
		t.Fatalf("wanted\n%s\nfound\n%s", before, after)
	}
}

func TestCheckOnlyLooks(t *testing.T) {
	dir := tree(t, map[string]string{"f": "one\ntwo\nthree\n"})
	before := listing(t, dir)
	must(t, run(dir, addition+edit, false, true))
	if after := listing(t, dir); after != before {
		t.Fatal(after)
	}
}

func TestExtraFilesComeInTheSameStep(t *testing.T) {
	dir := tree(t, map[string]string{"requirement_patches/u.diff": "old, longer than the new one"})
	must(t, run(dir, addition, false, false, Extra{Path: "requirement_patches/u.diff", Content: []byte("new")},
		Extra{Path: "bin/run", Content: []byte("#!"), Mode: 0o755}))
	content, err := os.ReadFile(filepath.Join(dir, "requirement_patches/u.diff"))
	must(t, err)
	info, err := os.Stat(filepath.Join(dir, "bin/run"))
	must(t, err)
	if string(content) != "new" || info.Mode().Perm() != 0o755 {
		t.Fatalf("%q %v", content, info.Mode())
	}
}

func TestAnExtraFileReplacesALinkInsteadOfFollowingIt(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("precious"), 0o644))
	dir := tree(t, map[string]string{"out": "-> " + outside, "d": "-> " + filepath.Dir(outside)})
	must(t, Apply(dir, nil, []Extra{{Path: "out", Content: []byte("mine")}}, false))
	if err := Apply(dir, nil, []Extra{{Path: "d/outside", Content: []byte("mine")}}, false); err == nil {
		t.Fatal("it went through a link")
	}
	if content, err := os.ReadFile(outside); err != nil || string(content) != "precious" {
		t.Fatalf("%q %v", content, err)
	}
}

func TestOwnersAndOtherPermissionBitsStay(t *testing.T) {
	dir := tree(t, map[string]string{"f": "one\ntwo\nthree\n", "sub/x": ""})
	must(t, os.Chmod(filepath.Join(dir, "f"), 0o660))
	must(t, os.Chown(filepath.Join(dir, "f"), 20001, 20002))
	must(t, os.Chown(filepath.Join(dir, "sub"), 20003, 20004))
	must(t, run(dir, addition+edit, false, false))
	for name, want := range map[string][3]uint32{"f": {0o660, 20001, 20002}, "sub/new": {0o755, 20003, 20004}} {
		var st syscall.Stat_t
		must(t, syscall.Lstat(filepath.Join(dir, name), &st))
		if found := [3]uint32{st.Mode & 0o777, st.Uid, st.Gid}; found != want {
			t.Errorf("%s: wanted %o, found %o", name, want, found)
		}
	}
}

func TestTroubleWhileWritingIsUndone(t *testing.T) {
	dir := tree(t, map[string]string{"a": "A\n", "b/c": "C\n", "gone": "G\n"})
	before := listing(t, dir)
	d, err := openDisk(dir)
	must(t, err)
	defer d.close()
	was, next := map[string]*node{}, map[string]*node{
		"a": {perm: 0o644, content: []byte("changed"), uid: -1}, "gone": nil,
		"b": nil, "n/e/w": {perm: 0o644, content: []byte("new"), uid: -1},
	}
	for path := range next {
		was[path], _ = d.read(path)
	}
	was["b"] = &node{perm: 0o644} // what the plan believes is a file is a directory: removing it fails
	if err := d.commit(was, next); err == nil {
		t.Fatal("it went well")
	}
	if after := listing(t, dir); after != before {
		t.Fatalf("wanted\n%s\nfound\n%s", before, after)
	}
}

func TestNoTemporaryFilesStay(t *testing.T) {
	dir := tree(t, map[string]string{"f": "one\ntwo\nthree\n"})
	must(t, run(dir, addition+edit, false, false))
	if found := listing(t, dir); strings.Contains(found, ".runner-") {
		t.Fatal(found)
	}
}

// FuzzParse looks for diffs that make the parser panic, and for paths that get out.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{edit, addition, "GIT binary patch\nliteral 1\nA0\n\n", "diff --git a/x b/x\nindex 0..1\nGIT binary patch\ndelta 3\nA00000\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, diff []byte) {
		files, err := patch.Parse(diff, 1)
		if err != nil {
			return
		}
		dir := filepath.Join(t.TempDir(), "tree")
		must(t, os.Mkdir(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("one\ntwo\nthree\n"), 0o644))
		_ = Apply(dir, patch.Reverse(files), nil, true)
		_ = Apply(dir, files, nil, false)
		entries, err := os.ReadDir(filepath.Dir(dir))
		must(t, err)
		if len(entries) != 1 {
			t.Fatalf("%q reached outside", diff)
		}
	})
}
