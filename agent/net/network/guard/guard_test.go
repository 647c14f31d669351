package guard

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// TestMain runs the tests in a network namespace of their own.
func TestMain(m *testing.M) { networktest.Main(m) }

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
}

var bridgeAddress = net.HardwareAddr{0x0a, 0x58, 10, 199, 0, 1}

// podsOf are some with consecutive addresses of both families.
func podsOf(count int) (pods []Pod) {
	first, second := netip.MustParseAddr("10.199.0.2"), netip.MustParseAddr("fd99::2")
	for i := range count {
		pods = append(pods, Pod{Interface: fmt.Sprintf("sppod%d", i), Addresses: []netip.Addr{first, second}})
		first, second = first.Next(), second.Next()
	}
	return pods
}

// expect compares the sets with what they should have of these pods.
func expect(t *testing.T, g *Guard, pods []Pod) {
	t.Helper()
	conn, err := nft.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range g.ruleset(conn).all() {
		has, err := conn.GetSetElements(s.set)
		if err != nil {
			t.Fatalf("set %s: %v", s.set.Name, err)
		}
		var got, want []string
		for _, e := range has {
			got = append(got, string(e.Key))
		}
		for _, e := range s.elements(pods) {
			want = append(want, string(e.Key))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("set %s has %d elements, want those of %d pods", s.set.Name, len(got), len(pods))
		}
	}
}

// TestFullNode: an agent starts on a node with many pods of two families, and one more pod comes, and one goes.
func TestFullNode(t *testing.T) {
	needRoot(t)
	for _, count := range []int{0, 1, 110, 120, 500, 2000} {
		t.Run(fmt.Sprint(count, " pods"), func(t *testing.T) {
			g, pods := New("full"), podsOf(count+1)
			for _, pod := range pods[:count] {
				g.Adopt(pod)
			}
			if err := g.Set(bridgeAddress); err != nil {
				t.Fatal(err)
			}
			expect(t, g, pods[:count])
			if err := g.Add(pods[count]); err != nil {
				t.Fatal(err)
			}
			expect(t, g, pods)
			for range 2 {
				if err := g.Remove(pods[0].Interface); err != nil {
					t.Fatal(err)
				}
			}
			expect(t, g, pods[1:])
			if err := g.Delete(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// tableNameBytesMax is the kernel's NFT_NAME_MAXLEN, with the byte at its end.
const tableNameBytesMax = 256

// TestNobodyIsConnectedUnguarded: while the kernel refuses the table Add fails, and makes all of it when that ends. A table that is there
// stays in force meanwhile.
func TestNobodyIsConnectedUnguarded(t *testing.T) {
	needRoot(t)
	pods := podsOf(3)
	former := New("refused")
	former.Adopt(pods[0])
	if err := former.Set(bridgeAddress); err != nil {
		t.Fatal(err)
	}
	g := New("refused")
	g.Adopt(pods[0])
	name := g.table.Name
	g.table.Name = strings.Repeat("x", tableNameBytesMax+1) // the kernel refuses the transaction
	if err := g.Set(bridgeAddress); err == nil {
		t.Fatal("the kernel takes anything")
	}
	if err := g.Add(pods[1]); err == nil {
		t.Error("a pod is connected although its frames cannot be judged")
	}
	expect(t, former, pods[:1])
	g.table.Name = name
	if err := g.Add(pods[2]); err != nil {
		t.Error(err)
	}
	expect(t, g, pods)
	if err := former.Delete(); err != nil { // somebody else removes it
		t.Fatal(err)
	}
	if err := g.Add(pods[2]); err != nil {
		t.Error(err)
	}
	expect(t, g, pods)
	if err := g.Delete(); err != nil {
		t.Fatal(err)
	}
}
