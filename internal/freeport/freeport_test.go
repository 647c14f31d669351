package freeport

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const childEnv = "FREEPORT_TEST_CHILD"

// TestMain: as a child, the test's binary prints addresses until its input ends.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	var got []string
	for range 2 * blockSize {
		address, err := Address()
		if err != nil {
			panic(err)
		}
		got = append(got, address)
	}
	os.Stdout.WriteString(strings.Join(got, "\n"))
}

// TestNoAddressTwice: not within a process, by several goroutines, and not in two
// processes that live at the same time, though nobody listens.
func TestNoAddressTwice(t *testing.T) {
	var lock sync.Mutex
	seen := map[string]bool{}
	take := func(address string) {
		lock.Lock()
		defer lock.Unlock()
		if seen[address] {
			t.Errorf("%s was given twice", address)
		}
		seen[address] = true
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range blockSize {
				address, err := Address()
				if err != nil {
					t.Error(err)
					return
				}
				take(address)
			}
		})
	}
	group.Wait()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childEnv+"=1")
	out, err := child.Output()
	if err != nil {
		t.Fatal(err)
	}
	for address := range strings.Lines(string(out)) {
		take(strings.TrimSpace(address))
	}
	if want := 6 * blockSize; len(seen) != want {
		t.Errorf("%d addresses, want %d", len(seen), want)
	}
}

// TestAnAddressInUseIsPassedOver: somebody who does not use this package may listen in the range.
func TestAnAddressInUseIsPassedOver(t *testing.T) {
	first, err := Address()
	if err != nil {
		t.Fatal(err)
	}
	for own.next == own.end { // the first of the next block, whichever that is
		if first, err = Address(); err != nil {
			t.Fatal(err)
		}
	}
	taken := at(own.next)
	l, err := net.Listen("tcp", taken)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if next, err := Address(); err != nil || next == taken || next == first {
		t.Errorf("after %s, with %s in use: %s, %v", first, taken, next, err)
	}
}
