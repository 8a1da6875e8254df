package patch

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git names objects so
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
)

// maxInflated bounds one side of a binary patch.
const maxInflated = 1 << 30

// Binary is a git binary patch. Before and After are the object names of both contents.
type Binary struct {
	Before, After     string
	forward, backward *piece
}

// piece makes one content out of the other: as a whole or as a delta.
type piece struct {
	delta bool
	data  []byte
}

func (b *Binary) reverse() *Binary {
	return &Binary{Before: b.After, After: b.Before, forward: b.backward, backward: b.forward}
}

// Apply returns the new content. Both contents are checked against their object names.
func (b *Binary) Apply(content []byte) ([]byte, error) {
	if b.forward == nil {
		return nil, errors.New("the binary patch cannot be reversed")
	}
	if err := checkName(b.Before, content); err != nil {
		return nil, fmt.Errorf("binary patch does not apply: %w", err)
	}
	result := b.forward.data
	if b.forward.delta {
		var err error
		if result, err = applyDelta(content, b.forward.data); err != nil {
			return nil, err
		}
	}
	if err := checkName(b.After, result); err != nil {
		return nil, fmt.Errorf("binary patch is damaged: %w", err)
	}
	return result, nil
}

// checkName compares content with a full object name; all zeros name what is not there.
func checkName(name string, content []byte) error {
	if strings.Trim(name, "0") == "" && name != "" {
		if len(content) > 0 {
			return errors.New("expected no content")
		}
		return nil
	}
	var h hash.Hash
	switch len(name) {
	case 40:
		h = sha1.New()
	case 64:
		h = sha256.New()
	default:
		return errors.New("no full index line (made without --full-index)")
	}
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	if found := hex.EncodeToString(h.Sum(nil)); found != name {
		return fmt.Errorf("expected content %s, found %s", name[:12], found[:12])
	}
	return nil
}

// binary reads the one or two pieces that follow `GIT binary patch`.
func (p *parser) binary(file *File, before, after string) error {
	file.Binary = &Binary{Before: before, After: after}
	var err error
	if file.Binary.forward, err = p.piece(file); err != nil {
		return err
	}
	if file.Binary.forward == nil {
		return p.wrong(file.Path(), "binary patch without data")
	}
	file.Binary.backward, err = p.piece(file)
	return err
}

// piece reads `literal N` or `delta N`, lines of base 85 and an empty line; nil where none starts.
func (p *parser) piece(file *File) (*piece, error) {
	kind, length, found := strings.Cut(p.line(), " ")
	size, err := strconv.ParseInt(length, 10, 64)
	if !found || (kind != "literal" && kind != "delta") || err != nil {
		return nil, nil
	}
	var packed []byte
	for p.at++; p.line() != ""; p.at++ {
		if packed, err = decodeLine(packed, p.line()); err != nil {
			return nil, p.wrong(file.Path(), "binary patch: %v", err)
		}
	}
	p.at++
	data, err := inflate(packed, size)
	if err != nil {
		return nil, p.wrong(file.Path(), "binary patch: %v", err)
	}
	return &piece{delta: kind == "delta", data: data}, nil
}

func inflate(packed []byte, size int64) ([]byte, error) {
	if size < 0 || size > maxInflated {
		return nil, fmt.Errorf("a size of %d bytes", size)
	}
	reader, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(reader, size+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != size {
		return nil, fmt.Errorf("%d bytes instead of %d", len(data), size)
	}
	return data, nil
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// decodeLine appends one line: its first letter gives the bytes (A=1 … Z=26, a=27 … z=52), the rest
// is base 85, five digits for four bytes.
func decodeLine(into []byte, line string) ([]byte, error) {
	count := 0
	switch c := line[0]; {
	case c >= 'A' && c <= 'Z':
		count = int(c-'A') + 1
	case c >= 'a' && c <= 'z':
		count = int(c-'a') + 27
	default:
		return nil, fmt.Errorf("a line that starts with %q", line[0])
	}
	digits := line[1:]
	if len(digits) != (count+3)/4*5 {
		return nil, errors.New("a line of the wrong length")
	}
	for ; len(digits) > 0; digits = digits[5:] {
		var value uint64
		for i := range 5 {
			digit := strings.IndexByte(alphabet, digits[i])
			if digit < 0 {
				return nil, fmt.Errorf("the digit %q", digits[i])
			}
			value = value*85 + uint64(digit)
		}
		if value > 0xffffffff {
			return nil, errors.New("digits beyond 32 bits")
		}
		word := []byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}
		n := min(count, 4)
		into, count = append(into, word[:n]...), count-n
	}
	return into, nil
}

var errDelta = errors.New("binary patch: damaged delta")

// applyDelta runs a git pack delta over base.
func applyDelta(base, delta []byte) ([]byte, error) {
	before, delta, ok := deltaSize(delta)
	after, delta, ok2 := deltaSize(delta)
	if !ok || !ok2 || before != uint64(len(base)) || after > maxInflated {
		return nil, errDelta
	}
	result := make([]byte, 0, after)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		var part []byte
		switch {
		case op&0x80 != 0:
			part, delta, ok = deltaCopy(op, base, delta)
		case op != 0 && int(op) <= len(delta):
			part, delta, ok = delta[:op], delta[op:], true
		default:
			ok = false
		}
		if !ok || uint64(len(result)+len(part)) > after {
			return nil, errDelta
		}
		result = append(result, part...)
	}
	if uint64(len(result)) != after {
		return nil, errDelta
	}
	return result, nil
}

func deltaSize(delta []byte) (uint64, []byte, bool) {
	var size uint64
	for i := 0; i < len(delta) && i < 9; i++ {
		size |= uint64(delta[i]&0x7f) << (7 * i)
		if delta[i]&0x80 == 0 {
			return size, delta[i+1:], true
		}
	}
	return 0, nil, false
}

// deltaCopy reads the offset and size bytes that op announces and cuts that piece out of base.
func deltaCopy(op byte, base, delta []byte) (part, rest []byte, ok bool) {
	var values [7]uint64
	for i := range 7 {
		if op&(1<<i) == 0 {
			continue
		}
		if len(delta) == 0 {
			return nil, nil, false
		}
		values[i], delta = uint64(delta[0]), delta[1:]
	}
	offset := values[0] | values[1]<<8 | values[2]<<16 | values[3]<<24
	size := values[4] | values[5]<<8 | values[6]<<16
	if size == 0 {
		size = 0x10000
	}
	if offset+size > uint64(len(base)) {
		return nil, nil, false
	}
	return base[offset : offset+size], delta, true
}
