package shutdown

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// standIn is a bus with systemd-logind on it, for one client.
type standIn struct {
	t       *testing.T
	conn    *net.UnixConn
	in      *bufio.Reader
	serial  uint32
	delay   uint64 // microseconds
	confDir string
	lock    *os.File // our end of the lock that we gave
}

// serve speaks D-Bus until the client hangs up.
func (s *standIn) serve() {
	s.handshake()
	for {
		m, err := dbus.DecodeMessage(s.in)
		if err != nil {
			return
		}
		s.answer(m)
	}
}

// handshake lets everybody in and agrees to pass files.
func (s *standIn) handshake() {
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return
		}
		switch verb, _, _ := strings.Cut(strings.Trim(line, "\x00\r\n"), " "); verb {
		case "AUTH":
			if strings.TrimSpace(strings.Trim(line, "\x00")) == "AUTH" {
				s.write([]byte("REJECTED EXTERNAL\r\n"))
				continue
			}
			s.write([]byte("OK 0123456789abcdef0123456789abcdef\r\n"))
		case "NEGOTIATE_UNIX_FD":
			s.write([]byte("AGREE_UNIX_FD\r\n"))
		case "BEGIN":
			return
		}
	}
}

func (s *standIn) answer(m *dbus.Message) {
	member, _ := m.Headers[dbus.FieldMember].Value().(string)
	switch member {
	case "Hello":
		s.reply(m, nil, ":1.1")
	case "Get":
		s.reply(m, nil, dbus.MakeVariant(s.delay))
	case "KillUnit": // it reads its configuration again
		text, err := os.ReadFile(filepath.Join(s.confDir, confFile))
		if err != nil || !strings.Contains(string(text), "InhibitDelayMaxSec=40\n") {
			s.t.Errorf("its configuration: %q, %v", text, err)
		}
		s.delay = 40_000_000
		s.reply(m, nil)
	case "Inhibit":
		ours, theirs, err := os.Pipe()
		if err != nil {
			s.t.Error(err)
			return
		}
		s.lock = ours
		s.reply(m, theirs, dbus.UnixFDIndex(0))
		theirs.Close()
	case "AddMatch":
		s.reply(m, nil)
		s.signal(true)
	}
}

func (s *standIn) reply(to *dbus.Message, file *os.File, body ...any) {
	s.send(dbus.TypeMethodReply, map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(to.Serial()), dbus.FieldSender: dbus.MakeVariant(logindName),
	}, file, body...)
}

func (s *standIn) signal(begins bool) {
	s.send(dbus.TypeSignal, map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(logindPath), dbus.FieldInterface: dbus.MakeVariant(logindInterface),
		dbus.FieldMember: dbus.MakeVariant("PrepareForShutdown"), dbus.FieldSender: dbus.MakeVariant(":1.0"),
	}, nil, begins)
}

func (s *standIn) send(kind dbus.Type, headers map[dbus.HeaderField]dbus.Variant, file *os.File, body ...any) {
	m := &dbus.Message{Type: kind, Headers: headers, Body: body}
	if len(body) > 0 {
		headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	var rights []byte
	if file != nil {
		headers[dbus.FieldUnixFDs] = dbus.MakeVariant(uint32(1))
		rights = syscall.UnixRights(int(file.Fd()))
	}
	var out bytes.Buffer
	if err := m.EncodeTo(&out, binary.LittleEndian); err != nil {
		s.t.Errorf("encode: %v", err)
		return
	}
	s.serial++
	binary.LittleEndian.PutUint32(out.Bytes()[8:], s.serial) // the library leaves it to its connections
	if _, _, err := s.conn.WriteMsgUnix(out.Bytes(), rights, nil); err != nil {
		s.t.Errorf("send: %v", err)
	}
}

func (s *standIn) write(text []byte) {
	if _, err := s.conn.Write(text); err != nil {
		s.t.Errorf("write: %v", err)
	}
}

// TestLogindIsSpokenTo by the real client, on a socket of this test.
func TestLogindIsSpokenTo(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "bus")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan *standIn, 1)
	go func() {
		conn, err := listener.AcceptUnix()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		s := &standIn{t: t, conn: conn, in: bufio.NewReader(conn), delay: 5_000_000, confDir: filepath.Join(dir, "conf")}
		s.serve()
		done <- s
	}()
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+socket)
	got, err := SystemLogind()
	if err != nil {
		t.Fatal(err)
	}
	got.(*logind).confDir = filepath.Join(dir, "conf")
	if d, err := got.Delay(); err != nil || d != 5*time.Second {
		t.Errorf("delay %v, %v", d, err)
	}
	if err := got.SetDelay(40 * time.Second); err != nil {
		t.Error(err)
	}
	if d, err := got.Delay(); err != nil || d != 40*time.Second {
		t.Errorf("delay %v, %v", d, err)
	}
	lock, err := got.Inhibit()
	if err != nil {
		t.Fatal(err)
	}
	signals, err := got.Watch()
	if err != nil {
		t.Fatal(err)
	}
	if begins, ok := <-signals; !ok || !begins {
		t.Errorf("signal %v, %v", begins, ok)
	}
	lock.Close()
	got.Close()
	if _, open := <-signals; open {
		t.Error("the signals go on after the connection")
	}
	s := <-done
	defer s.lock.Close()
	if n, err := s.lock.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the lock is held: %d, %v", n, err)
	}
}
