package main

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"github.com/rogpeppe/go-internal/testscript"
)

// objectStore serves a bucket with empty files and sets S3 to the server's URL. t ends it.
func objectStore(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) == 0 {
			ts.Fatalf("usage: object-store BUCKET KEY...")
		}
		backend, bucket := s3mem.New(), args[0]
		ts.Check(backend.CreateBucket(context.Background(), bucket))
		for _, key := range args[1:] {
			_, err := backend.PutObject(context.Background(), bucket, key, nil, strings.NewReader(""), 0)
			ts.Check(err)
		}
		server := httptest.NewServer(gofakes3.New(backend).Server())
		t.Cleanup(server.Close)
		ts.Setenv("S3", server.URL)
		ts.Setenv("AWS_ACCESS_KEY_ID", "key")
		ts.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	}
}

// ageKeys writes a private key and, in another file, its recipient.
func ageKeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: age-keys IDENTITY RECIPIENT")
	}
	identity, err := age.GenerateX25519Identity()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(identity.String()+"\n"), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(identity.Recipient().String()+"\n"), 0o600))
}
