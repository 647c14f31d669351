package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/durable"
	"github.com/setpoint-io/setpoint/raftstore/backup"
)

// refusalBytesMax is how much of a refusal is shown.
const refusalBytesMax = 64 << 10

// A Refusal is a server's answer that it will not, and why.
type Refusal struct {
	StatusCode int
	Reason     string
}

// Error implements error: the reason, or the code if there is none.
func (r *Refusal) Error() string {
	if r.Reason == "" {
		return fmt.Sprintf("the server answered %d %s", r.StatusCode, http.StatusText(r.StatusCode))
	}
	return r.Reason
}

// FetchStatus asks one server for its status with the credentials of a kubeconfig.
func FetchStatus(ctx context.Context, config *rest.Config) (*ServerStatus, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return FetchStatusAt(ctx, client, config.Host)
}

// FetchStatusAt asks the server at a URL, as another server.
func FetchStatusAt(ctx context.Context, client *http.Client, base string) (*ServerStatus, error) {
	status := &ServerStatus{}
	err := call(ctx, client, base+statusPath, struct{}{}, status)
	if refused := (*Refusal)(nil); errors.As(err, &refused) {
		return nil, &Refusal{StatusCode: refused.StatusCode} // its text tells nothing more
	}
	return status, err
}

// FetchMembers asks one server for the members with the credentials of a kubeconfig.
func FetchMembers(ctx context.Context, config *rest.Config) ([]Member, error) {
	var members []Member
	return members, callCluster(ctx, config, membersPath, struct{}{}, &members)
}

// OrderChange has one server carry out a change of the membership, which may take
// as long as a new server needs to catch up.
func OrderChange(ctx context.Context, config *rest.Config, c MembershipChange) error {
	return callCluster(ctx, config, changePath, c, &struct{}{})
}

// callCluster is call with the credentials of a kubeconfig.
func callCluster(ctx context.Context, config *rest.Config, path string, in, out any) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return call(ctx, client, config.Host+path, in, out)
}

// call is one call with JSON in and out. An answer other than 200 is a *Refusal.
func call(ctx context.Context, client *http.Client, url string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	return answered(client, request, out)
}

// answered sends a request and reads the JSON of its answer. One other than 200 is a *Refusal.
func answered(client *http.Client, request *http.Request, out any) error {
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return json.NewDecoder(response.Body).Decode(out)
	}
	return refusal(response)
}

// refusal reads why a server will not.
func refusal(response *http.Response) *Refusal {
	text, _ := io.ReadAll(io.LimitReader(response.Body, refusalBytesMax))
	return &Refusal{StatusCode: response.StatusCode, Reason: strings.TrimSpace(string(text))}
}

// FetchBackup writes an archive of a running cluster to out and checks it on the
// way. An archive that did not arrive whole is an error. Only the administrator may.
func FetchBackup(ctx context.Context, config *rest.Config, out io.Writer, progress BackupProgress) (BackupReport, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return BackupReport{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+backupPath, http.NoBody)
	if err != nil {
		return BackupReport{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return BackupReport{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		refused := refusal(response)
		return BackupReport{}, fmt.Errorf("%w: %s", &Refusal{StatusCode: refused.StatusCode}, refused.Reason)
	}
	return backup.Check(io.TeeReader(response.Body, out), progress)
}

// ErrNotOurs says that a file is somebody else's.
var ErrNotOurs = errors.New("the file is there and is no backup: name another one, or remove it")

// FetchBackupFile is FetchBackup into a file, which appears when it is whole and on
// the disk. An older backup of its name is replaced; anything else stays, and ErrNotOurs is returned.
func FetchBackupFile(ctx context.Context, config *rest.Config, path string, progress BackupProgress) (report BackupReport, err error) {
	if err := mayReplace(path); err != nil {
		return report, err
	}
	again := func() error { return mayReplace(path) } // fetching takes minutes
	err = durable.ReplaceIf(again, path, func(file *os.File) (err error) {
		report, err = FetchBackup(ctx, config, file, progress)
		return err
	})
	return report, err
}

// mayReplace fails if there is something that is neither a backup nor an empty file.
func mayReplace(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w", path, ErrNotOurs)
	case info.Size() == 0:
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if !backup.IsBackup(file) {
		return fmt.Errorf("%s: %w", path, ErrNotOurs)
	}
	return nil
}
