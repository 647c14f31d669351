package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// askTimeout is what a list or a removal may take.
	askTimeout = 2 * time.Minute
	// partBytes is how much is sent in one request, and how much memory that takes. The protocol takes 10,000 parts of a file.
	partBytes = 16 << 20
)

// bucket is a part of a bucket: the keys that begin with prefix, which is empty or ends in a slash.
type bucket struct {
	client       *minio.Client
	name, prefix string
}

func newBucket(name, prefix string, s3 S3) (*bucket, error) {
	host, tls, err := parseEndpoint(s3.Endpoint)
	if err != nil {
		return nil, err
	}
	transport, err := minio.DefaultTransport(tls)
	if err != nil {
		return nil, err
	}
	who := credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Transport: transport}},
	})
	client, err := minio.New(host, &minio.Options{Creds: who, Secure: tls, Region: s3.Region, Transport: transport})
	if err != nil {
		return nil, err
	}
	return &bucket{client: client, name: name, prefix: prefix}, nil
}

// Put implements Place. An upload that fails leaves nothing under the name.
func (b *bucket) Put(ctx context.Context, _, name string, fill func(io.Writer) error) (bytes int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, PutTimeout)
	defer cancel()
	written, err := b.upload(ctx, name, fill)
	if err != nil {
		return 0, err
	}
	if err := b.readBack(ctx, name, written); err != nil {
		return 0, errors.Join(err, b.Remove(context.WithoutCancel(ctx), name)) // also when it took too long, or the server stops
	}
	return written.bytes, nil
}

// upload sends what fill writes while it writes.
func (b *bucket) upload(ctx context.Context, name string, fill func(io.Writer) error) (written content, err error) {
	out, in := io.Pipe()
	filled := make(chan error, 1)
	go func() {
		var err error
		written, err = write(in, fill)
		_ = in.CloseWithError(err)
		filled <- err
	}()
	// The MD5 of each part is what every server knows; newer checksums are refused by some.
	_, err = b.client.PutObject(ctx, b.name, b.prefix+name, out, -1, minio.PutObjectOptions{PartSize: partBytes, SendContentMd5: true})
	_ = out.CloseWithError(b.said(err)) // fill is not kept waiting
	if fillErr := <-filled; fillErr != nil {
		return written, fillErr
	}
	return written, b.said(err)
}

func (b *bucket) readBack(ctx context.Context, name string, written content) error {
	in, err := b.Open(ctx, name)
	if err != nil {
		return fmt.Errorf("it cannot be read back: %w", err)
	}
	defer in.Close()
	return written.same(in)
}

// Files implements Place. Keys below a further slash are none.
func (b *bucket) Files(ctx context.Context, prefix string, max int) (files []File, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel() // ends a list that is not read to its end
	for object := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + prefix}) {
		if object.Err != nil {
			return nil, b.said(object.Err)
		}
		name := strings.TrimPrefix(object.Key, b.prefix)
		if name == "" || strings.HasSuffix(name, "/") {
			continue
		}
		if files = append(files, File{name, object.Size}); len(files) == max {
			break
		}
	}
	return files, nil
}

// Open implements Place.
func (b *bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, b.said(err)
	}
	if _, err := object.Stat(); err != nil { // GetObject itself asks nobody
		_ = object.Close()
		return nil, b.said(err)
	}
	return object, nil
}

// Remove implements Place.
func (b *bucket) Remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return b.said(b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}))
}

// said puts what the object store answered into words.
func (b *bucket) said(err error) error {
	if err == nil {
		return nil
	}
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchKey:
		return fmt.Errorf("bucket %s: %w", b.name, fs.ErrNotExist)
	case minio.NoSuchBucket:
		return fmt.Errorf("there is no bucket %s: make it first", b.name)
	case minio.AccessDenied:
		return fmt.Errorf("bucket %s: %w: it needs s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload", b.name, err)
	}
	return fmt.Errorf("bucket %s: %w", b.name, err)
}
