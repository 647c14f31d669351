package csi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/registration"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/agent/volumes/csinode"
)

// Config of a Manager. All but Patience, Dial, BuiltIn, FileLabel, Changed and Affected is required.
type Config struct {
	NodeName string
	Client   kubernetes.Interface
	Dirs     podconfig.Dirs
	// Nodes writes which drivers there are into our CSINode.
	Nodes *csinode.Keeper
	// BuiltIn are the drivers that no plugin may claim to be.
	BuiltIn []string
	// Node is our Node, nil before it is known.
	Node func() *corev1.Node
	// FileLabel is the SELinux label of the files of containers that ask for this; "" if the runtime chooses it. nil has none.
	FileLabel func(*runtimeapi.SELinuxOption) (string, error)
	// Changed is called when InUse has changed.
	Changed func()
	// Affected is called with each pod that has a volume of a driver that has registered: it may have waited for the driver.
	Affected func(pod types.UID)
	Events   events.Recorder
	Logger   *slog.Logger
	// Patience is how long a driver may take until the pod is told that it waits for it; 0: 10 s.
	Patience time.Duration
	// Dial connects to a driver's socket; nil is gRPC over unix sockets.
	Dial func(endpoint string) (*grpc.ClientConn, error)
}

// Manager mounts the volumes of CSI drivers. It is safe for concurrent use; Mount and Unmount of one pod take turns.
type Manager struct {
	Config
	drivers  drivers
	objects  storagelisters.CSIDriverLister
	factory  informers.SharedInformerFactory
	synced   cache.InformerSynced
	periods  *signal        // of the objects: how often drivers are asked for their limits
	children sync.WaitGroup // goroutines that unstage, or ask for limits
	// work is the context of those goroutines, and ends with Run.
	work context.Context
	stop context.CancelFunc

	mu      sync.Mutex
	volumes map[id]*volume
}

// New returns a Manager that knows which volumes an earlier one has mounted. Use Run once.
func New(ctx context.Context, cfg Config) (*Manager, error) {
	if cfg.Dial == nil {
		cfg.Dial = registration.Dial
	}
	cfg.Patience = cmp.Or(cfg.Patience, patience)
	if cfg.Changed == nil {
		cfg.Changed = func() {}
	}
	if cfg.Affected == nil {
		cfg.Affected = func(types.UID) {}
	}
	m := &Manager{Config: cfg, drivers: drivers{byName: map[string]*driver{}}, volumes: map[id]*volume{}, periods: newSignal()}
	m.work, m.stop = context.WithCancel(ctx)
	m.factory = informers.NewSharedInformerFactory(cfg.Client, 0)
	of := m.factory.Storage().V1().CSIDrivers()
	m.objects, m.synced = of.Lister(), of.Informer().HasSynced
	if _, err := of.Informer().AddEventHandler(m.objectsChange()); err != nil {
		return nil, fmt.Errorf("follow CSIDrivers: %w", err)
	}
	if err := m.load(); err != nil {
		return nil, fmt.Errorf("find the CSI volumes that are mounted: %w", err)
	}
	return m, nil
}

// Run follows the CSIDrivers and unstages what no pod uses, until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	defer m.drivers.closeAll()
	defer m.children.Wait()
	defer m.end()
	m.factory.StartWithContext(ctx)
	defer m.factory.Shutdown()
	m.releaseUnused()
	<-ctx.Done()
}

// end lets nothing begin any more. It is done with the lock, so that a goroutine is either waited for or never begins.
func (m *Manager) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop()
}

// Volume is one that a pod uses: a persistent volume, or one that is in the pod's spec.
type Volume struct {
	Pod *corev1.Pod
	// Name is that of the pod for the volume.
	Name string
	// PV is nil for a volume in the pod's spec, which Inline is then.
	PV     *corev1.PersistentVolume
	Inline *corev1.CSIVolumeSource
	// ReadOnly is what the pod says of its claim.
	ReadOnly bool
	// Token issues a token of the pod's service account, or hands out one that is still good for a while.
	Token TokenSource
}

// Mounted is where a volume is.
type Mounted struct {
	// Path is that of the files, or of the block device.
	Path string
	// GiveGroup says that the files are to be given to the pod's fsGroup, Relabel that they are to get its SELinux label.
	GiveGroup, Relabel bool
}

// Mount makes a volume ready for a pod, or does what is due for one that is.
func (m *Manager) Mount(ctx context.Context, v Volume) (Mounted, error) {
	t, err := m.task(ctx, v)
	if err != nil {
		return Mounted{}, stepError("MountVolume.SetUp", v.specName(), err)
	}
	used := m.use(t.id, v.Pod.UID, t.paths)
	has, err := m.look(ctx, t, used)
	if err == nil && !has {
		err = m.mount(ctx, t, used)
	}
	if err != nil {
		return Mounted{}, err
	}
	return Mounted{Path: t.paths.target(v.Pod.UID), GiveGroup: t.givesGroup(), Relabel: !t.paths.block && t.label == ""}, nil
}

// look tells whether the pod has the volume and nothing is due but that it may have grown. It needs no driver otherwise: pods run
// on while theirs is replaced.
func (m *Manager) look(ctx context.Context, t *task, v *volume) (bool, error) {
	if err := v.begin(ctx); err != nil {
		return false, stepError("MountVolume.SetUp", t.specName(), err)
	}
	defer v.end()
	has, err := t.has(v)
	if err != nil {
		return false, stepError("MountVolume.SetUp", t.specName(), err)
	}
	t.driver, _ = m.drivers.get(t.id.driver)
	if !has || t.info.republish {
		return false, nil
	}
	if t.driver != nil {
		m.expand(ctx, t, v)
	}
	return true, nil
}

// mount attaches, stages and publishes a volume.
func (m *Manager) mount(ctx context.Context, t *task, v *volume) (err error) {
	if t.info.attach {
		if t.publishContext, err = m.awaitAttached(ctx, t); err != nil {
			return m.notAttached(ctx, t, err)
		}
	}
	if t.driver, err = m.drivers.get(t.id.driver); err != nil {
		return stepError("MountVolume.SetUp", t.specName(), fmt.Errorf("kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: %w", err))
	}
	if err := v.begin(ctx); err != nil {
		return stepError("MountVolume.SetUp", t.specName(), fmt.Errorf("another call about the volume is under way: %w", err))
	}
	defer v.end()
	if err := m.agree(ctx, t, v); err != nil {
		return stepError("MountVolume.SetUp", t.specName(), err)
	}
	if err := m.stage(ctx, t, v); err != nil {
		return stepError(t.step("MountVolume.MountDevice", "MapVolume.SetUpDevice"), t.specName(), err)
	}
	if err := m.publish(ctx, t, v); err != nil {
		return stepError(t.step("MountVolume.SetUp", "MapVolume.MapPodDevice"), t.specName(), err)
	}
	m.expand(ctx, t, v)
	return nil
}

// specName is upstream's name of the volume, also in paths.
func (v *Volume) specName() string {
	if v.PV != nil {
		return v.PV.Name
	}
	return v.Name
}

// StepError says which step failed, in upstream's words.
type StepError struct {
	Step, Volume string
	Err          error
}

func stepError(step, volume string, err error) error {
	return &StepError{Step: step, Volume: volume, Err: err}
}

func (e *StepError) Error() string {
	return fmt.Sprintf("%s failed for volume %q : %v", e.Step, e.Volume, e.Err)
}

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// Follows tells whether a pod has volumes at which Mount has to look from time to time: they may have grown, or their driver wants
// to publish them again.
func (m *Manager) Follows(pod types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.volumes {
		if v.pods[pod] {
			return true
		}
	}
	return false
}
