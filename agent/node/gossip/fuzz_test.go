package gossip

import (
	"crypto/aes"
	"crypto/cipher"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// inlet is a transport of which only the receiving side is used.
type inlet struct {
	packets chan *memberlist.Packet
	streams chan net.Conn
}

func (i *inlet) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return net.IPv4(10, 0, 0, 1), 7946, nil
}
func (i *inlet) WriteTo([]byte, string) (time.Time, error)           { return time.Now(), nil }
func (i *inlet) PacketCh() <-chan *memberlist.Packet                 { return i.packets }
func (i *inlet) StreamCh() <-chan net.Conn                           { return i.streams }
func (i *inlet) Shutdown() error                                     { return nil }
func (i *inlet) DialTimeout(string, time.Duration) (net.Conn, error) { return nil, errNoRoute }

// FuzzMessages gives a member arbitrary messages of one who has the key, such as a
// stolen node: in a packet, or in a stream. It must survive them.
func FuzzMessages(f *testing.F) {
	in := &inlet{packets: make(chan *memberlist.Packet), streams: make(chan net.Conn)}
	key := make([]byte, keyBytes)
	pool, err := Join(Config{Name: "n1", Role: RoleNode, BindAddr: "10.0.0.1:7946", Keys: [][]byte{key}, Logger: slog.New(slog.DiscardHandler), Transport: in})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = pool.list.Shutdown() })
	for kind := range byte(13) {
		f.Add(false, []byte{kind, 0x82, 0xa4, 'N', 'o', 'd', 'e', 0xa2, 'n', '2', 0xa5, 'S', 'e', 'q', 'N', 'o', 0x01})
		f.Add(true, []byte{kind, 0x83, 0xa5, 'N', 'o', 'd', 'e', 's', 0x01, 0xaa, 'U', 's', 'e', 'r', 'S', 't', 'a', 't', 'e', 'L', 0x00, 0xa4, 'J', 'o', 'i', 'n', 0xc3})
	}
	f.Add(false, []byte{7, 2, 0, 3, 0, 2, 3, 0x80, 4, 0x80})
	f.Add(
		false,
		[]byte{
			4,
			0x85,
			0xab,
			'I',
			'n',
			'c',
			'a',
			'r',
			'n',
			'a',
			't',
			'i',
			'o',
			'n',
			1,
			0xa4,
			'N',
			'o',
			'd',
			'e',
			0xa2,
			'n',
			'2',
			0xa4,
			'A',
			'd',
			'd',
			'r',
			0xa4,
			10,
			0,
			0,
			2,
			0xa4,
			'P',
			'o',
			'r',
			't',
			1,
			0xa3,
			'V',
			's',
			'n',
			0xa6,
			1,
			5,
			2,
			0,
			0,
			0,
		},
	)
	f.Fuzz(func(t *testing.T, stream bool, message []byte) {
		if stream {
			in.stream(sealed(t, key, message))
			return
		}
		in.packets <- &memberlist.Packet{Buf: sealed(t, key, message), From: &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 7946}, Timestamp: time.Now()}
	})
}

// stream returns when the member has read what it wanted, and closed.
func (i *inlet) stream(sealed []byte) {
	const encryptedStream = 10
	ours, theirs := net.Pipe()
	defer ours.Close()
	i.streams <- theirs
	header := []byte{encryptedStream, 0, 0, byte(len(sealed) >> 8), byte(len(sealed))}
	if _, err := ours.Write(append(header, sealed...)); err != nil {
		return // refused before its end
	}
	answer := make([]byte, 64<<10)
	for {
		if _, err := ours.Read(answer); err != nil {
			return
		}
	}
}

// sealed encrypts as members do: version, nonce, what AES-GCM makes.
func sealed(t *testing.T, key, message []byte) []byte {
	t.Helper()
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, gcm.NonceSize())
	return gcm.Seal(append([]byte{1}, nonce...), nonce, message, nil)
}
