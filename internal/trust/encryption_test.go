package trust

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"
	"time"
)

// The key is the same on servers whose folder lacks the file, and what the file says, stays.
func TestEncryptionKey(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	cluster := must[*Cluster](t)(InitCluster(dir, twoServers, now))
	name, key, err := must[*Cluster](t)(LoadCluster(dir)).CA.EncryptionKey()
	if err != nil {
		t.Fatal(err)
	}
	text := string(must[[]byte](t)(os.ReadFile(cluster.EncryptionFile())))
	if !strings.Contains(text, "name: "+name+"\n") || !strings.Contains(text, "secret: "+base64.StdEncoding.EncodeToString(key[:])+"\n") {
		t.Errorf("%s is not in %s", name, text)
	}
	other := must[*Cluster](t)(InitCluster(t.TempDir(), twoServers, now))
	if otherName, otherKey, _ := other.CA.EncryptionKey(); otherName == name || otherKey == key {
		t.Error("two clusters have one key")
	}
	if secret, err := cluster.CA.signing().key.Bytes(); err != nil || string(secret) == string(key[:]) {
		t.Error("the key is the CA's")
	}
	if err := os.WriteFile(cluster.EncryptionFile(), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	must[*Cluster](t)(InitCluster(dir, twoServers, now))
	if got := must[[]byte](t)(os.ReadFile(cluster.EncryptionFile())); string(got) != "mine" {
		t.Errorf("written over: %s", got)
	}
}
