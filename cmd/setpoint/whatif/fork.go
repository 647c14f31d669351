package whatif

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/server/admin"
)

const (
	// forkBytesMax is how much of a cluster is copied: about a tenth of the memory that a fork of it may take.
	forkBytesMax = 512 << 20
)

var errTooLarge = errors.New("the cluster holds more than what a fork is made of")

// fork is a cluster in memory that goes on from what another held.
type fork struct {
	*setpoint.Cluster
	client   *kubernetes.Clientset
	copied   *copying
	habits   *habits
	report   admin.BackupHeader
	dir      string
	revision uint64
}

// open copies the cluster and starts the copy. Nothing is written to the cluster.
func open(ctx context.Context, config *rest.Config, bytesMax int64) (*fork, error) {
	secrets, err := typesOfSecrets(ctx, config)
	if err != nil {
		return nil, refusal(err)
	}
	copied, err := newCopying(secrets)
	if err != nil {
		return nil, err
	}
	restored, header, err := read(ctx, config, copied, bytesMax)
	if err != nil {
		return nil, err
	}
	f := &fork{copied: copied, report: header, revision: restored.Revision}
	if f.dir, err = os.MkdirTemp("", "setpoint-what-if-"); err != nil {
		return nil, err
	}
	f.habits = learn(copied.pods, time.Now())
	f.Cluster, err = restored.Start(ctx,
		setpoint.Config{ServiceCIDR: copied.serviceCIDR, LocalVolumes: copied.localVolumes},
		setpoint.Played{Nodes: copied.nodes, Habit: f.habits.of})
	if err == nil {
		err = f.Ready(ctx)
	}
	if err == nil {
		f.client, err = kubernetes.NewForConfig(f.config())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the copy of the cluster does not start: %w", err), f.close())
	}
	return f, nil
}

// config is the administrator's client of the fork.
func (f *fork) config() *rest.Config {
	config := f.ClientConfig(adminUser())
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	return config
}

func (f *fork) close() error {
	err := os.RemoveAll(f.dir)
	if f.Cluster != nil {
		err = errors.Join(err, f.Stop())
	}
	return err
}

// read streams a backup of the cluster into memory.
func read(
	ctx context.Context, config *rest.Config, copied *copying, bytesMax int64,
) (*setpoint.Restored, admin.BackupHeader, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var header admin.BackupHeader
	progress := func(h *admin.BackupHeader, _, bytes int64) {
		if header = *h; max(h.Bytes, bytes) > bytesMax {
			cancel(fmt.Errorf("%w: %d MiB, and at most %d", errTooLarge, max(h.Bytes, bytes)>>20, bytesMax>>20))
		}
	}
	in, out := io.Pipe()
	fetched := make(chan error, 1)
	go func() {
		_, err := admin.FetchBackup(ctx, config, out, progress)
		out.CloseWithError(err)
		fetched <- err
	}()
	restored, err := setpoint.ReadBackup(ctx, in, copied.rewrite)
	in.CloseWithError(err)
	failed := <-fetched
	switch {
	case errors.Is(context.Cause(ctx), errTooLarge):
		return nil, header, context.Cause(ctx)
	case failed != nil:
		return nil, header, refusal(failed)
	}
	return restored, header, errors.Join(err, copied.broken)
}

const forAdministrators = "a what-if reads all of the cluster, so it is for administrators"

// refusal says in one sentence why the cluster is not to be copied.
func refusal(err error) error {
	if refused, ok := errors.AsType[*admin.Refusal](err); ok && refused.StatusCode == http.StatusForbidden {
		return fmt.Errorf("%w; %s", refused, forAdministrators)
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; %s", err, forAdministrators)
	}
	return err
}
