package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/agent/volumes/csi"
)

// RefreshEvery is how often content from the API should be brought up to date
// by another Mount.
const RefreshEvery = 30 * time.Second

// ErrUnsupported is wrapped by errors about volume sources this agent lacks.
var ErrUnsupported = errors.New("unsupported volume source")

// Objects looks up what volumes are made from.
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// Token issues a service account token for pod, valid for about seconds.
	Token(ctx context.Context, pod *corev1.Pod, audience string, seconds int64) (token string, expires time.Time, err error)
	// TrustBundle and TrustBundles find ClusterTrustBundles, by name or by signer and labels.
	TrustBundle(ctx context.Context, name string) (*certificatesv1.ClusterTrustBundle, error)
	TrustBundles(ctx context.Context, signer string, selector labels.Selector) ([]certificatesv1.ClusterTrustBundle, error)
	// RequestCertificate asks a signer for a certificate of pod; stubRequest is a PKCS #10 request, which proves that
	// we have the key.
	RequestCertificate(
		ctx context.Context, pod *corev1.Pod, p *corev1.PodCertificateProjection, stubRequest []byte,
	) (*certificatesv1.PodCertificateRequest, error)
	// CertificateRequest reads a request, once it is decided or after limit, whichever is first.
	CertificateRequest(
		ctx context.Context, namespace, name string, limit time.Duration,
	) (*certificatesv1.PodCertificateRequest, error)
	// Volume is the persistent volume a claim is bound to. A claim that is not owner's is refused, unless owner is nil.
	Volume(ctx context.Context, namespace, claim string, owner *corev1.Pod) (*corev1.PersistentVolume, error)
}

// Config of a Manager; Objects and Dirs are required.
type Config struct {
	Objects Objects
	Dirs    podconfig.Dirs
	// WithoutMounts uses plain directories in place of tmpfs, and paths in place
	// of bind mounts, for tests that do not run as root.
	WithoutMounts bool
	// TmpfsOptions are further mount options of every tmpfs; nil has none.
	TmpfsOptions []string
	// Local holds the volumes of the class setpoint-local; nil has none.
	Local Local
	// Drivers mount the volumes of CSI drivers that register; nil has none.
	Drivers Drivers
	// Node is our Node, nil before it is known.
	Node func() *corev1.Node
	// Warn tells users of a pod about what does not stop it; nil tells nobody.
	Warn func(pod *corev1.Pod, reason, message string)
}

// Manager prepares volumes. It is safe for concurrent use on different pods.
type Manager struct {
	Config
	tokens       tokenCache
	certificates certificates
}

// New returns a Manager.
func New(cfg Config) *Manager {
	return &Manager{Config: cfg, tokens: newTokenCache(), certificates: newCertificates()}
}

// Error names the volume that could not be prepared, in upstream's words.
type Error struct {
	Volume string
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", e.Volume, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Input is what volume content depends on beside the API's objects.
type Input struct {
	Pod         *corev1.Pod
	PodIPs      []string
	HostIPs     []string
	Allocatable corev1.ResourceList
	// Setup says that nothing of the pod runs yet: files may change their owner.
	Setup bool
}

// Place is where a volume is on the host.
type Place struct {
	// Path is that of the files, or of the block device.
	Path string
	// Relabel says that the files are to get the SELinux label of the container, as with a kubelet: they are the pod's.
	Relabel bool
}

// Places are those of a pod's volumes, by the pod's names for them.
type Places map[string]Place

// Mount makes every volume ready that a container of the pod has, or brings its content up to date,
// and returns where each is. As with a kubelet, the others are left alone.
func (m *Manager) Mount(ctx context.Context, in Input) (Places, error) {
	places, used := Places{}, usedBy(in.Pod)
	for i := range in.Pod.Spec.Volumes {
		v := &in.Pod.Spec.Volumes[i]
		if !used[v.Name] {
			continue
		}
		place, err := m.mount(ctx, in, v)
		if _, said := errors.AsType[*csi.StepError](err); said {
			return nil, err
		}
		if err != nil {
			return nil, &Error{Volume: v.Name, Err: err}
		}
		places[v.Name] = place
	}
	return places, nil
}

// Refreshes reports whether the pod has volumes that Mount brings up to date: their content follows API objects, or a driver
// has to be asked again.
func (m *Manager) Refreshes(pod *corev1.Pod) bool {
	if m.Drivers != nil && m.Drivers.Follows(pod.UID) {
		return true
	}
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil {
			return true
		}
	}
	return false
}

func (m *Manager) mount(ctx context.Context, in Input, v *corev1.Volume) (Place, error) {
	switch {
	case v.HostPath != nil:
		return Place{Path: v.HostPath.Path}, checkHostPath(v.HostPath)
	case v.PersistentVolumeClaim != nil:
		return m.claim(ctx, in, v, v.PersistentVolumeClaim.ClaimName)
	case v.Ephemeral != nil:
		return m.claim(ctx, in, v, in.Pod.Name+"-"+v.Name)
	case v.Image != nil:
		return Place{}, nil // the runtime mounts it
	case v.ConfigMap != nil, v.Secret != nil, v.DownwardAPI != nil, v.Projected != nil:
		return podsOwn(m.content(ctx, in, v))
	case v.EmptyDir != nil:
		return podsOwn(m.emptyDir(in.Pod, v))
	case v.CSI != nil && m.Drivers != nil:
		return m.byDriver(ctx, in, v, csi.Volume{Inline: v.CSI})
	default:
		return Place{}, ErrUnsupported
	}
}

// podsOwn is the place of files that the agent makes for one pod.
func podsOwn(path string, err error) (Place, error) { return Place{path, true}, err }

// dir is where a volume lives, named as upstream's.
func (m *Manager) dir(pod *corev1.Pod, plugin, name string) string {
	return filepath.Join(m.Dirs.Pod(pod), "volumes", "kubernetes.io~"+plugin, name)
}

// own sets the mode, past the umask, and the group with the set-group-id bit.
func own(dir string, mode os.FileMode, group *int64) error {
	if group != nil {
		if err := os.Chown(dir, -1, int(*group)); err != nil {
			return err
		}
		mode |= os.ModeSetgid
	}
	return os.Chmod(dir, mode)
}

func fsGroup(pod *corev1.Pod) *int64 {
	if sc := pod.Spec.SecurityContext; sc != nil {
		return sc.FSGroup
	}
	return nil
}

// isMountPoint compares devices; a bind mount within one file system is found
// by mountsBelow only.
func isMountPoint(dir string) bool {
	var a, b unix.Stat_t
	if unix.Lstat(dir, &a) != nil || unix.Lstat(filepath.Dir(dir), &b) != nil {
		return false
	}
	return a.Dev != b.Dev
}

// UnmountUnknown does for a pod of which nothing else is known what Unmount does.
func (m *Manager) UnmountUnknown(ctx context.Context, uid types.UID) error {
	return m.Unmount(ctx, &corev1.Pod{ObjectMeta: metaWithUID(uid)})
}

// Unmount removes the pod's directory and every mount below it. CSI drivers take away what they mounted.
func (m *Manager) Unmount(ctx context.Context, pod *corev1.Pod) error {
	m.tokens.forget(pod.UID)
	m.certificates.forget(pod.UID)
	dir := m.Dirs.Pod(pod)
	if m.Drivers != nil {
		if err := m.Drivers.Unmount(ctx, pod); err != nil {
			return err
		}
	}
	if err := m.releaseDevices(dir); err != nil {
		return err
	}
	mounts, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	for _, target := range mounts {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", target, err)
		}
	}
	return os.RemoveAll(dir)
}

// mountsBelow lists mount points inside dir, the innermost first. Removing a
// directory with something still mounted would delete the mounted content.
func mountsBelow(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if target := unescape(fields[4]); strings.HasPrefix(target, dir+"/") {
			out = append([]string{target}, out...)
		}
	}
	return out, nil
}

// unescape undoes the kernel's octal escapes in mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
