package place

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

// store is an object store; between is asked before each request and answers it itself if it returns true.
type store struct {
	between atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
}

// newStore serves a bucket named backups, and says who may use it by the environment.
func newStore(t *testing.T) (*store, S3) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	s, backend := &store{}, s3mem.New()
	if err := backend.CreateBucket(t.Context(), "backups"); err != nil {
		t.Fatal(err)
	}
	handler := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if between := s.between.Load(); between == nil || !(*between)(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return s, S3{Endpoint: server.URL, Region: "us-east-1"}
}

func at(t *testing.T, address string, s3 S3) Place {
	t.Helper()
	p, err := At(address, s3)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// text fills a file.
func text(s string) func(io.Writer) error {
	return func(out io.Writer) error { _, err := io.WriteString(out, s); return err }
}

func read(t *testing.T, p Place, name string) string {
	t.Helper()
	file, err := p.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func names(t *testing.T, p Place) (names []string) {
	t.Helper()
	files, err := p.Files(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		names = append(names, file.Name)
	}
	return names
}

// TestPlaces: what is put there is there, wherever that is.
func TestPlaces(t *testing.T) {
	_, s3 := newStore(t)
	for _, address := range []string{t.TempDir(), "s3://backups", "s3://backups/of/here/"} {
		t.Run(address, func(t *testing.T) {
			p := at(t, address, s3)
			for _, name := range []string{"b", "a", "c"} {
				if n, err := p.Put(t.Context(), "me", name, text("text of "+name)); err != nil || n != 9 {
					t.Fatal(n, err)
				}
			}
			if got := read(t, p, "a"); got != "text of a" {
				t.Errorf("read %q", got)
			}
			if err := errors.Join(p.Remove(t.Context(), "b"), p.Remove(t.Context(), "b")); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"a", "c"}, names(t, p)); diff != "" {
				t.Error(diff)
			}
			if files, err := p.Files(t.Context(), "c", 9); err != nil || len(files) != 1 || files[0].Name != "c" {
				t.Errorf("those of c: %v %v", files, err)
			}
			if files, err := p.Files(t.Context(), "", 1); err != nil || len(files) != 1 || files[0].Bytes != 9 {
				t.Errorf("one file: %v %v", files, err)
			}
			if _, err := p.Open(t.Context(), "b"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("one that is gone: %v", err)
			}
			file, err := OpenFile(t.Context(), strings.TrimSuffix(address, "/")+"/c", s3)
			if err != nil {
				t.Fatal(err)
			}
			_ = file.Close()
		})
	}
}

// TestNothingOfWhatFails: what cannot be written whole is not there.
func TestNothingOfWhatFails(t *testing.T) {
	_, s3 := newStore(t)
	broken := errors.New("no leader")
	long := bytes.Repeat([]byte("x"), partBytes+partBytes/2)
	for _, address := range []string{t.TempDir(), "s3://backups"} {
		for _, begun := range [][]byte{nil, []byte("a"), long} {
			p := at(t, address, s3)
			_, err := p.Put(t.Context(), "me", "a", func(out io.Writer) error {
				_, err := out.Write(begun)
				return errors.Join(broken, err)
			})
			if !errors.Is(err, broken) {
				t.Errorf("%s, %d bytes: %v", address, len(begun), err)
			}
			if got := names(t, p); got != nil {
				t.Errorf("%s, %d bytes: %v is there", address, len(begun), got)
			}
		}
	}
}

// TestALongFile goes in pieces, and comes back as it was.
func TestALongFile(t *testing.T) {
	_, s3 := newStore(t)
	p, long := at(t, "s3://backups", s3), strings.Repeat("0123456789abcde\n", partBytes/16*2+1)
	if n, err := p.Put(t.Context(), "me", "long", text(long)); err != nil || n != int64(len(long)) {
		t.Fatal(n, err)
	}
	if read(t, p, "long") != long {
		t.Error("it is another")
	}
}

// TestWhatABucketAnswers: an object store that is away, refuses, keeps something else, or has no such bucket.
func TestWhatABucketAnswers(t *testing.T) {
	s, s3 := newStore(t)
	other := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || r.URL.Query().Has("location") || r.URL.Query().Has("list-type") {
			return false
		}
		w.Header().Set("Last-Modified", "Sun, 29 Nov 2026 00:00:00 GMT")
		_, _ = io.WriteString(w, "text of b")
		return true
	}
	refused := func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>")
		return true
	}
	for _, c := range []struct {
		what, bucket, want string
		between            func(w http.ResponseWriter, r *http.Request) bool
	}{
		{"another text", "backups", errNotTheSame.Error(), other},
		{"no such bucket", "nowhere", "there is no bucket nowhere: make it first", nil},
		{"refused", "backups", "it needs s3:ListBucket, s3:GetObject", refused},
	} {
		s.between.Store(nil)
		if c.between != nil {
			s.between.Store(&c.between)
		}
		_, err := at(t, scheme+c.bucket, s3).Put(t.Context(), "me", "a", text("text of a"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", c.what, err, c.want)
		}
	}
	s.between.Store(nil)
	if got := names(t, at(t, "s3://backups", s3)); got != nil {
		t.Errorf("%v is there", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := at(t, "s3://backups", s3).Put(ctx, "me", "a", text("text of a")); !errors.Is(err, context.Canceled) {
		t.Errorf("when the server stops: %v", err)
	}
}

// TestStoppedWhileItIsReadBack: a file that nobody has read back does not stay.
func TestStoppedWhileItIsReadBack(t *testing.T) {
	s, s3 := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	between := func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			stop()
		}
		return false
	}
	s.between.Store(&between)
	p := at(t, "s3://backups", s3)
	if _, err := p.Put(ctx, "me", "a", text("text of a")); !errors.Is(err, context.Canceled) {
		t.Errorf("not stopped: %v", err)
	}
	if got := names(t, p); got != nil {
		t.Errorf("%v is there", got)
	}
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		address string
		s3      S3
		want    string
	}{
		{"s3://", S3{}, "s3://BUCKET"},
		{"s3://A_b", S3{}, "s3://BUCKET"},
		{"s3://backups/" + strings.Repeat("x", 2000), S3{}, "s3://backups"},
		{"s3://backups", S3{Endpoint: "minio.example.com"}, "https://HOST or http://HOST:PORT"},
		{"s3://backups", S3{Endpoint: "https://user:password@minio.example.com"}, "https://HOST or http://HOST:PORT"},
		{"s3://backups", S3{Endpoint: "https://minio.example.com/backups"}, "https://HOST or http://HOST:PORT"},
		{"s3://backups", S3{Endpoint: "https://minio.example.com"}, ""},
		{"s3://backups/here/", S3{}, ""},
		{"/var/backups", S3{}, ""},
	} {
		_, err := At(c.address, c.s3)
		if got := err == nil; got != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40s %v: %v, not %q", c.address, c.s3, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "password") {
			t.Errorf("a password is told: %v", err)
		}
	}
	for _, address := range []string{"s3://backups", "s3://backups/", "s3://backups/x/"} {
		if _, err := OpenFile(t.Context(), address, S3{}); err == nil {
			t.Errorf("%s is a file", address)
		}
	}
	if _, err := OpenFile(t.Context(), t.TempDir()+"/nothing", S3{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
