package replica

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
)

func TestWhoIsGone(t *testing.T) {
	silent := errors.New("i/o timeout")
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		dialed error
		gone   bool
		known  bool
	}{
		"its address refuses":     {refused, true, true},
		"it takes the call":       {nil, false, true},
		"its address is silent":   {silent, false, false},
		"another answers for it":  {errors.New("certificate of another"), false, false},
		"the connection is reset": {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Replica{cfg: Config{
				InitialServers: []Server{{ID: "a", Address: "a:1"}},
				Dial: func(_ context.Context, address, name string) (net.Conn, error) {
					if address != "a:1" || name != "a" {
						t.Errorf("called %s at %s", name, address)
					}
					near, far := net.Pipe()
					far.Close()
					return near, c.dialed
				},
			}}
			gone, err := r.Gone(t.Context(), "a+01020304")
			if gone != c.gone || (err == nil) != c.known {
				t.Errorf("gone = %v, %v", gone, err)
			}
		})
	}
	if gone, err := (&Replica{}).Gone(t.Context(), "b"); gone || err == nil {
		t.Errorf("without an address: gone = %v, %v", gone, err)
	}
}
