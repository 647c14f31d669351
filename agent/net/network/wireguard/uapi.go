package wireguard

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// The configuration protocol of WireGuard's processes: https://www.wireguard.com/xplatform/#configuration-protocol.

const get = "get=1\n\n"

// setText is a set operation.
func setText(c wgtypes.Config) string {
	var b strings.Builder
	b.WriteString("set=1\n")
	if c.PrivateKey != nil {
		fmt.Fprintf(&b, "private_key=%x\n", c.PrivateKey[:])
	}
	if c.ListenPort != nil {
		fmt.Fprintf(&b, "listen_port=%d\n", *c.ListenPort)
	}
	for _, p := range c.Peers {
		fmt.Fprintf(&b, "public_key=%x\n", p.PublicKey[:])
		if p.Remove {
			b.WriteString("remove=true\n")
			continue
		}
		fmt.Fprintf(&b, "endpoint=%s\n", p.Endpoint)
		fmt.Fprintf(&b, "persistent_keepalive_interval=%d\nreplace_allowed_ips=true\n", *p.PersistentKeepaliveInterval/time.Second)
		for _, n := range p.AllowedIPs {
			fmt.Fprintf(&b, "allowed_ip=%s\n", &n)
		}
	}
	b.WriteString("\n")
	return b.String()
}

// errRefused is an answer other than errno=0.
var errRefused = errors.New("the WireGuard process refuses")

// answer reads an operation's, as far as [changes] asks for it.
func answer(from io.Reader) (*wgtypes.Device, error) {
	d := &wgtypes.Device{Type: wgtypes.Userspace}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), "=")
		if key == "errno" {
			if value != "0" {
				return nil, fmt.Errorf("%w: errno %s", errRefused, value)
			}
			return d, nil
		}
		if err := take(d, key, value); err != nil {
			return nil, fmt.Errorf("answer of the WireGuard process: %s: %w", key, err)
		}
	}
	return nil, errors.Join(lines.Err(), io.ErrUnexpectedEOF)
}

var errNoPeer = errors.New("no public_key before it")

func take(d *wgtypes.Device, key, value string) (err error) {
	switch key {
	case "private_key":
		d.PrivateKey, err = hexKey(value)
		return err
	case "listen_port":
		d.ListenPort, err = strconv.Atoi(value)
		return err
	case "public_key":
		var p wgtypes.Peer
		p.PublicKey, err = hexKey(value)
		d.Peers = append(d.Peers, p)
		return err
	case "endpoint", "allowed_ip", "persistent_keepalive_interval", "last_handshake_time_sec":
		if len(d.Peers) == 0 {
			return errNoPeer
		}
		return takeOfPeer(&d.Peers[len(d.Peers)-1], key, value)
	}
	return nil
}

func takeOfPeer(p *wgtypes.Peer, key, value string) error {
	switch key {
	case "endpoint":
		address, err := netip.ParseAddrPort(value)
		p.Endpoint = net.UDPAddrFromAddrPort(address)
		return err
	case "last_handshake_time_sec":
		seconds, err := strconv.ParseInt(value, 10, 64)
		p.LastHandshakeTime = time.Unix(seconds, 0)
		return err
	case "persistent_keepalive_interval":
		seconds, err := strconv.Atoi(value)
		p.PersistentKeepaliveInterval = time.Duration(seconds) * time.Second
		return err
	}
	_, n, err := net.ParseCIDR(value)
	if err == nil {
		p.AllowedIPs = append(p.AllowedIPs, *n)
	}
	return err
}

func hexKey(text string) (wgtypes.Key, error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		return wgtypes.Key{}, err
	}
	return wgtypes.NewKey(b)
}
