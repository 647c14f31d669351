package wireguard

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
)

func key(b byte) (k wgtypes.Key) {
	k[0] = b
	return k
}

func peer(b byte, endpoint, prefix string) Peer {
	return Peer{Key: key(b), Endpoint: netip.MustParseAddrPort(endpoint), Ranges: []netip.Prefix{netip.MustParsePrefix(prefix)}}
}

// told is how a device is after it was told of a peer.
func told(p Peer) wgtypes.Peer {
	c := p.config()
	return wgtypes.Peer{PublicKey: c.PublicKey, Endpoint: c.Endpoint, AllowedIPs: c.AllowedIPs, PersistentKeepaliveInterval: keepalive}
}

func TestChanges(t *testing.T) {
	one, two := peer(1, "192.0.2.1:51820", "10.42.1.0/24"), peer(2, "192.0.2.2:51820", "10.42.2.0/24")
	moved, ranged := one, one
	moved.Endpoint, ranged.Ranges = netip.MustParseAddrPort("192.0.2.9:51820"), []netip.Prefix{netip.MustParsePrefix("10.42.9.0/24")}
	mapped, two4 := told(one), told(one)
	mapped.Endpoint = net.UDPAddrFromAddrPort(netip.MustParseAddrPort("[::ffff:192.0.2.1]:51820"))
	two4.AllowedIPs = append(two4.AllowedIPs, *networktest.IPNet(netip.MustParsePrefix("10.42.3.0/24")))
	silent := told(one)
	silent.Endpoint = nil
	for name, c := range map[string]struct {
		present []wgtypes.Peer
		wanted  []Peer
		set     []Peer
		removed []wgtypes.Key
	}{
		"nothing":                    {},
		"a first peer":               {wanted: []Peer{one}, set: []Peer{one}},
		"as it is":                   {present: []wgtypes.Peer{told(two), told(one)}, wanted: []Peer{one, two}},
		"as it is, in IPv6's form":   {present: []wgtypes.Peer{mapped}, wanted: []Peer{one}},
		"one more":                   {present: []wgtypes.Peer{told(one)}, wanted: []Peer{one, two}, set: []Peer{two}},
		"one is gone":                {present: []wgtypes.Peer{told(one), told(two)}, wanted: []Peer{one}, removed: []wgtypes.Key{key(2)}},
		"another address":            {present: []wgtypes.Peer{told(one)}, wanted: []Peer{moved}, set: []Peer{moved}},
		"another range":              {present: []wgtypes.Peer{told(one)}, wanted: []Peer{ranged}, set: []Peer{ranged}},
		"a range that is not theirs": {present: []wgtypes.Peer{two4}, wanted: []Peer{one}, set: []Peer{one}},
		"no address":                 {present: []wgtypes.Peer{silent}, wanted: []Peer{one}, set: []Peer{one}},
		"one key twice":              {wanted: []Peer{one, moved}, set: []Peer{moved}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []wgtypes.PeerConfig
			for _, k := range c.removed {
				want = append(want, wgtypes.PeerConfig{PublicKey: k, Remove: true})
			}
			for _, p := range c.set {
				want = append(want, p.config())
			}
			present := &wgtypes.Device{PrivateKey: key(9), ListenPort: 51820, Peers: c.present}
			got, none := changes(present, Config{Key: key(9), Port: 51820, Peers: c.wanted})
			if diff := cmp.Diff(wgtypes.Config{Peers: want}, got); diff != "" || none != (len(want) == 0) {
				t.Errorf("none %v: %s", none, diff)
			}
		})
	}
	if got, none := changes(&wgtypes.Device{}, Config{Key: key(9), Port: 51820}); none || *got.PrivateKey != key(9) || *got.ListenPort != 51820 {
		t.Errorf("a new device is told %+v", got)
	}
}

func TestKeyStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wireguard")
	first, err := Key(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Key(dir); err != nil || again != first || again == (wgtypes.Key{}) {
		t.Errorf("another key the second time: %v", err)
	}
	path := filepath.Join(dir, keyFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Key(dir); err == nil || !strings.Contains(err.Error(), "delete it") || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestAnswersThatLie(t *testing.T) {
	for text, want := range map[string]string{
		"":                                io.ErrUnexpectedEOF.Error(),
		"listen_port=1\n":                 io.ErrUnexpectedEOF.Error(),
		"errno=98\n\n":                    "errno 98",
		"endpoint=192.0.2.1:1\nerrno=0\n": errNoPeer.Error(),
		"private_key=zz\nerrno=0\n":       "private_key",
		"public_key=00\nerrno=0\n":        "public_key",
		"listen_port=x\nerrno=0\n":        "listen_port",
		strings.Repeat("x", 1<<20) + "\n": "too long",
	} {
		if _, err := answer(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %q", text, err, want)
		}
	}
	if _, err := answer(strings.NewReader("errno=1\n\n")); !errors.Is(err, errRefused) {
		t.Error(err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("private_key=" + strings.Repeat("0a", 32) + "\nlisten_port=51820\npublic_key=" + strings.Repeat("0b", 32) +
		"\nendpoint=192.0.2.1:1\nallowed_ip=10.0.0.0/8\nerrno=0\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := answer(bytes.NewReader(text))
		if (d == nil) == (err == nil) {
			t.Errorf("%v, %v", d, err)
		}
	})
}
