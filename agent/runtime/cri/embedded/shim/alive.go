package shim

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

const (
	// endTimeMax is how long a shim that cuts a call off may still seem to be there: it is about to end.
	endTimeMax   = time.Second
	endLookEvery = 10 * time.Millisecond
)

// Alive tells whether the shim takes calls, whether or not it answers them.
func (c *Client) Alive(ctx context.Context) bool {
	conn, _, err := c.open(ctx, request{Op: opWatch})
	if err == nil {
		_ = conn.Close()
	}
	return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist)
}

// HasEnded tells whether a call failed with this error because the shim has ended.
func (c *Client) HasEnded(ctx context.Context, err error) bool {
	cutOff := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	deadline := time.Now().Add(endTimeMax)
	for c.Alive(ctx) {
		if !cutOff || time.Now().After(deadline) {
			return false
		}
		time.Sleep(endLookEvery)
	}
	return true
}
