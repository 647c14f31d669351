package server

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatHangsDoesNotKeepTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		start := time.Now()
		err := within(closeTimeout, func() error { <-release; return nil })
		if !errors.Is(err, errStuck) || time.Since(start) != closeTimeout {
			t.Errorf("err = %v after %v", err, time.Since(start))
		}
		close(release)
		failed := errors.New("disk")
		if err := within(closeTimeout, func() error { return failed }); !errors.Is(err, failed) {
			t.Errorf("err = %v", err)
		}
	})
}
