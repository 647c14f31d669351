package process

import (
	"net"
	"strings"
	"testing"
)

// TestListenSaysWhatToDo: a port that is taken is told with the flag of whoever asked, and with no other.
func TestListenSaysWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, flag := range []string{PortFlag, AdvertiseFlag} {
		err := CheckPort(taken.Addr().String(), flag)
		if err == nil || !strings.HasSuffix(err.Error(), "choose another with "+flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
