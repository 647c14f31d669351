package place

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/spf13/pflag"
)

// scheme begins the address of a bucket.
const scheme = "s3://"

// PutTimeout is what a file may take to get into a bucket and to be read back.
const PutTimeout = 2 * time.Hour

// File is a file by its name.
type File struct {
	Name  string
	Bytes int64
}

// Place holds files under names without a slash. Its methods may be called at the same time.
type Place interface {
	// Put makes a file of what fill writes, and says how long it is. An owner puts one at a time; what his former process has left of
	// one in a folder is written over.
	Put(ctx context.Context, owner, name string, fill func(io.Writer) error) (bytes int64, err error)
	// Files are at most max of the files whose names begin with prefix, by name.
	Files(ctx context.Context, prefix string, max int) ([]File, error)
	// Open reads one. The error wraps fs.ErrNotExist if there is none.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// Remove is no error if there is none.
	Remove(ctx context.Context, name string) error
}

// S3 says how buckets are reached. The zero value is AWS.
type S3 struct {
	// Endpoint is the URL of the object store, http or https; empty is that of AWS.
	Endpoint string
	// Region is that of the bucket; empty: it is asked for.
	Region string
}

// Flags are the flags for it; each name begins with prefix.
func (s *S3) Flags(flags *pflag.FlagSet, prefix string) {
	flags.StringVar(&s.Endpoint, prefix+"s3-endpoint", "", "URL of the object store of s3:// addresses (default AWS)")
	flags.StringVar(&s.Region, prefix+"s3-region", "", "region of the bucket (default: the object store is asked)")
}

// IsBucket reports whether an address is that of a bucket or of a file in one.
func IsBucket(address string) bool { return strings.HasPrefix(address, scheme) }

// At returns the place of an address: a folder, or s3://BUCKET[/PREFIX]. It looks at the address only.
func At(address string, s3 S3) (Place, error) {
	if !IsBucket(address) {
		return folder(address), nil
	}
	name, prefix, _ := strings.Cut(strings.TrimPrefix(address, scheme), "/")
	if err := s3utils.CheckValidBucketNameStrict(name); err != nil {
		return nil, fmt.Errorf("%s: %w: it is s3://BUCKET or s3://BUCKET/PREFIX", address, err)
	}
	if prefix = strings.TrimSuffix(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	if err := s3utils.CheckValidObjectNamePrefix(prefix); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return newBucket(name, prefix, s3)
}

// OpenFile opens the file of an address: a path, or s3://BUCKET/KEY.
func OpenFile(ctx context.Context, address string, s3 S3) (io.ReadCloser, error) {
	if !IsBucket(address) {
		return os.Open(address)
	}
	dir, name := path.Split(address)
	if name == "" || dir == scheme {
		return nil, fmt.Errorf("%s: it names no file: s3://BUCKET/KEY", address)
	}
	place, err := At(dir, s3)
	if err != nil {
		return nil, err
	}
	return place.Open(ctx, name)
}

// errEndpoint does not repeat the address.
var errEndpoint = errors.New("the address of the object store is to be https://HOST or http://HOST:PORT, without a user, path or query")

// errNotTheSame: the place keeps something else than it was given.
var errNotTheSame = errors.New("what is read back is not what was written")

// content is what a file has to hold.
type content struct {
	bytes int64
	sum   [sha256.Size]byte
}

// write has fill write to out, and notes what it writes.
func write(out io.Writer, fill func(io.Writer) error) (content, error) {
	hash := sha256.New()
	counter := &counter{}
	err := fill(io.MultiWriter(out, hash, counter))
	return content{counter.bytes, [sha256.Size]byte(hash.Sum(nil))}, err
}

type counter struct{ bytes int64 }

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

// same reads to the end and compares.
func (c content) same(in io.Reader) error {
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return fmt.Errorf("it cannot be read back: %w", err)
	}
	if [sha256.Size]byte(hash.Sum(nil)) != c.sum {
		return errNotTheSame
	}
	return nil
}

// parseEndpoint reads the URL of an object store.
func parseEndpoint(text string) (host string, tls bool, err error) {
	if text == "" {
		return "s3.amazonaws.com", true, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", false, errEndpoint // which may hold a password
	}
	return u.Host, u.Scheme == "https", nil
}
