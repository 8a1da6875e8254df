package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"

	"stayer.dev/runner/internal/apply"
	"stayer.dev/runner/internal/patch"
)

// maxInput bounds a diff or file read from standard input or a path.
const maxInput = 1 << 30

func applyCommand(args []string) (int, error) {
	flags := flag.NewFlagSet("apply", flag.ContinueOnError)
	dir := flags.String("dir", ".", "directory the paths of the diff are relative to")
	prefix := flags.Int("p", 1, "leading components taken off each path")
	reverse := flags.Bool("reverse", false, "undo the diff")
	check := flags.Bool("check", false, "only say whether it applies")
	var also paths
	flags.Var(&also, "also-write", "path below --dir that gets a copy of the diff; may be repeated")
	input, err := parse(flags, args, "DIFF|-")
	if err != nil {
		return 2, err
	}
	diff, err := read(input[0])
	if err != nil {
		return 1, err
	}
	files, err := patch.Parse(diff, *prefix)
	if err != nil {
		return 1, fmt.Errorf("%s: %w", input[0], err)
	}
	if *reverse {
		files = patch.Reverse(files)
	}
	var extras []apply.Extra
	for _, path := range also {
		extras = append(extras, apply.Extra{Path: path, Content: diff})
	}
	if err := apply.Apply(*dir, files, extras, *check); err != nil {
		return 1, fmt.Errorf("%s: %w", input[0], err)
	}
	return 0, nil
}

// paths is a flag that may be given several times.
type paths []string

func (p *paths) String() string { return fmt.Sprint(*p) }

func (p *paths) Set(value string) error {
	*p = append(*p, value)
	return nil
}

func putCommand(args []string) (int, error) {
	flags := flag.NewFlagSet("put", flag.ContinueOnError)
	dir := flags.String("dir", ".", "directory the path is relative to")
	mode := flags.String("mode", "0644", "permission bits, octal")
	input, err := parse(flags, args, "PATH (its content comes from standard input)")
	if err != nil {
		return 2, err
	}
	bits, err := strconv.ParseUint(*mode, 8, 9)
	if err != nil {
		return 2, fmt.Errorf("--mode %q: wants octal permission bits such as 0644", *mode)
	}
	content, err := read("-")
	if err != nil {
		return 1, err
	}
	extra := apply.Extra{Path: input[0], Content: content, Mode: uint32(bits)}
	return 0, apply.Apply(*dir, nil, []apply.Extra{extra}, false)
}

// read returns a whole file or, for "-", standard input.
func read(path string) ([]byte, error) {
	in := os.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err == nil && len(data) > maxInput {
		err = fmt.Errorf("%s: larger than %d bytes", path, maxInput)
	}
	return data, err
}
