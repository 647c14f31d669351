package revoked

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/internal/revocation"
)

// fileName is where the list lies below an agent's data directory: what makes a node forget its cluster makes it forget this.
const fileName = "pki/revocations.json"

// fileBytesMax is how large the file is at most: all that a ConfigMap holds (1 MiB), were each of its bytes escaped. A larger one was not
// written by an agent, and counts as one that cannot be read.
const fileBytesMax = 8 << 20

var errTooLarge = fmt.Errorf("it is larger than %d bytes", fileBytesMax)

// WriteFile replaces the file at path by data at once.
type WriteFile func(path string, data []byte) error

// List is who is shut out, as an agent last heard. Make it with Open.
type List struct {
	// Judge knows it.
	Judge  *revocation.Judge
	path   string
	write  WriteFile
	logger *slog.Logger

	mu sync.Mutex
	// heard: a list was taken in this run. What there is not to begin with is not known before all is, and then may be there already.
	heard bool
}

// Open returns the list that an earlier agent has kept below dataDir: the first server that this one asks may be one that was revoked. A
// file that cannot be read is told of and counts as none.
func Open(dataDir string, write WriteFile, logger *slog.Logger) *List {
	l := &List{Judge: &revocation.Judge{}, path: filepath.Join(dataDir, fileName), write: write, logger: logger}
	data, err := read(l.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		logger.Warn("who was revoked cannot be read: nobody is until a server has said who", "file", l.path, "err", err)
	}
	l.Judge.UseData(data, logger)
	return l
}

// read returns the list in the file at path.
func read(path string) (data map[string]string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, fileBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(text) > fileBytesMax {
		return nil, errTooLarge
	}
	if err := json.Unmarshal(text, &data); err != nil {
		return nil, err // and nothing of what was read before the mistake
	}
	return data, nil
}

// Follow takes each list until ctx ends.
func (l *List) Follow(ctx context.Context, client kubernetes.Interface) {
	lists := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(metav1.NamespaceSystem),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, revocation.ConfigMapName).String()
		}))
	informer := lists.Core().V1().ConfigMaps().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { l.use(o) },
		UpdateFunc: func(_, o any) { l.use(o) },
		DeleteFunc: func(any) { l.take(nil, true) },
	})
	if err != nil { // it has ended already
		return
	}
	lists.Start(ctx.Done())
	if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) && len(informer.GetStore().ListKeys()) == 0 {
		l.take(nil, false) // the one that was kept has been deleted since
	}
	<-ctx.Done()
	lists.Shutdown()
}

// use takes a list.
func (l *List) use(o any) {
	list, ok := o.(*corev1.ConfigMap)
	if !ok || list.Name != revocation.ConfigMapName || list.Namespace != metav1.NamespaceSystem {
		return
	}
	l.take(list.Data, true)
}

// take counts at once, and is kept for the next agent. One that is not newer than what was heard does not count.
func (l *List) take(data map[string]string, newer bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard && !newer {
		return
	}
	l.heard = true
	l.Judge.UseData(data, l.logger)
	text, err := json.Marshal(data)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(l.path), 0o700), l.write(l.path, text))
	}
	if err != nil {
		l.logger.Warn("who is revoked was not kept: after a restart this agent begins with an older list", "file", l.path, "err", err)
	}
}
