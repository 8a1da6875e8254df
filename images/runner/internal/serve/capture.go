package serve

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// drainPatience bounds the wait for a log's end after every writer was killed.
const drainPatience = 10 * time.Second

// capture copies a job's output into its log up to a limit and swallows the rest, so that a job
// that writes without end is neither blocked nor able to fill the disk.
type capture struct {
	done      chan struct{}
	reader    *os.File
	written   int64
	truncated bool
}

// newCapture starts capturing; the returned file is the job's output and to be closed after its start.
func newCapture(path string, limit int64) (*capture, *os.File, error) {
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, nil, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	c := &capture{done: make(chan struct{}), reader: reader}
	go c.copy(log, limit)
	return c, writer, nil
}

func (c *capture) copy(log *os.File, limit int64) {
	defer close(c.done)
	defer log.Close()
	var err error
	c.written, err = io.Copy(log, io.LimitReader(c.reader, limit))
	rest, _ := io.Copy(io.Discard, c.reader)
	c.truncated = rest > 0 || (err != nil && !errors.Is(err, os.ErrDeadlineExceeded))
}

// finish waits for the output's end and says how much was kept and whether something was dropped.
func (c *capture) finish() (int64, bool) {
	c.reader.SetReadDeadline(time.Now().Add(drainPatience))
	<-c.done
	c.reader.Close()
	return c.written, c.truncated
}
