package images

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/runtime/images/credentials"
)

// grantsMax bounds the secrets and accounts that are remembered for one image of one repository; the oldest go first, and who had one
// of them asks the registry again.
const grantsMax = 100

// access remembers who may use the images that pulls of this agent brought: an image that is on the node is not
// everybody's. It keeps a file for each image, and one for each pull under way, so that a crash does not make a private
// image look as if it had always been there. Puller's locks keep pulls of one image apart; files change at once.
type access struct{ dir string }

// accessRecord is the file of one image.
type accessRecord struct {
	ID string
	// Repositories: who may use the image under which name, without tag and digest.
	Repositories map[string]grants
}

type grants struct {
	// Everybody: the registry gave it without credentials.
	Everybody bool
	Secrets   []grant
	Accounts  []grant `json:",omitempty"`
}

// grant is one pull secret, or one service account, by which the image was pulled. An account has no Hash: its logins change.
type grant struct{ Namespace, Name, UID, Hash string }

// matches: the same login, whoever wrote it down, or the same Secret or account, whatever its login is by now.
func (g grant) matches(other grant) bool {
	return g.Hash != "" && g.Hash == other.Hash || g.UID != "" && g.UID == other.UID && g.Namespace == other.Namespace && g.Name == other.Name
}

// holds reports whether one of the credentials is by one of the grants.
func holds(list []grant, creds []credential) bool {
	return slices.ContainsFunc(creds, func(c credential) bool {
		return c.grant != nil && slices.ContainsFunc(list, c.grant.matches)
	})
}

// granted adds by to the list, as its newest.
func granted(list []grant, by grant) []grant {
	list = append(slices.DeleteFunc(list, func(old grant) bool { return old == by }), by)
	return list[max(0, len(list)-grantsMax):]
}

const (
	recordPrefix = "image-"
	intentPrefix = "pulling-"
)

func (a access) path(prefix, key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(a.dir, prefix+hex.EncodeToString(sum[:])+".json")
}

// begin notes that a pull of image starts.
func (a access) begin(image string) error {
	full := fullName(image)
	return a.write(a.path(intentPrefix, full), full)
}

// failed forgets the note of begin.
func (a access) failed(image string) { _ = os.Remove(a.path(intentPrefix, fullName(image))) } // what stays costs a pull

// pulled notes by which credential id was pulled as image; nil means none.
func (a access) pulled(id, image string, by *grant) error {
	record, err := a.read(id)
	if err != nil { // there is none, or it is damaged: it begins anew with what was just proven
		record = accessRecord{ID: id}
	}
	if record.Repositories == nil {
		record.Repositories = map[string]grants{}
	}
	repository := repositoryOf(image)
	g := record.Repositories[repository]
	switch {
	case by == nil:
		g.Everybody = true
	case by.Hash == "":
		g.Accounts = granted(g.Accounts, *by)
	default:
		g.Secrets = granted(g.Secrets, *by)
	}
	record.Repositories[repository] = g
	if err := a.write(a.path(recordPrefix, id), record); err != nil {
		return err
	}
	a.failed(image)
	return nil
}

// podCredentials are a pod's: of its pull secrets, and of plugins that are given a token of its service account.
type podCredentials struct{ secrets, account func() []credential }

// allows reports whether a pod with these credentials may use what is here as image without asking the registry. What no
// pull of this agent brought (archives, images built here) is everybody's, unless v says otherwise. In doubt it says no.
func (a access) allows(present *runtimeapi.Image, image string, v Verification, of podCredentials) bool {
	record, err := a.read(present.Id)
	pulled := !errors.Is(err, fs.ErrNotExist) || a.underway(present, image)
	if !v.needed(image, pulled) {
		return true
	}
	if err != nil {
		return false
	}
	g := record.Repositories[repositoryOf(image)]
	return g.Everybody || holds(g.Secrets, of.secrets()) || len(g.Accounts) > 0 && holds(g.Accounts, of.account())
}

// underway reports whether a pull of the image by any of its names began and never told how it ended.
func (a access) underway(present *runtimeapi.Image, image string) bool {
	for _, n := range slices.Concat([]string{image}, present.RepoTags, present.RepoDigests) {
		if _, err := os.Stat(a.path(intentPrefix, fullName(n))); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// prune forgets the images that are gone.
func (a access) prune(present []*runtimeapi.Image) {
	kept := map[string]bool{}
	for _, image := range present {
		kept[a.path(recordPrefix, image.Id)] = true
	}
	records, _ := filepath.Glob(filepath.Join(a.dir, recordPrefix+"*")) // the pattern is well-formed
	for _, path := range records {
		if !kept[path] {
			_ = os.Remove(path) // tried again after the next pull
		}
	}
}

func (a access) read(id string) (accessRecord, error) {
	var record accessRecord
	data, err := os.ReadFile(a.path(recordPrefix, id))
	if err != nil {
		return record, err
	}
	return record, json.Unmarshal(data, &record)
}

func (a access) write(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := private.Folder(a.dir); err != nil {
		return err
	}
	return private.WriteFile(path, data)
}

// fullName gives an image's name all its parts, so that different spellings of one are one.
func fullName(image string) string {
	ref, err := name.ParseReference(image)
	if err != nil {
		return image
	}
	return ref.Name()
}

func repositoryOf(image string) string {
	ref, err := name.ParseReference(image)
	if err != nil {
		return image
	}
	return ref.Context().Name()
}

// grantOf names a login of a Secret without giving it away.
func grantOf(namespace, name, uid string, auth *runtimeapi.AuthConfig) *grant {
	parts := strings.Join([]string{auth.Username, auth.Password, auth.IdentityToken}, "\x00")
	sum := sha256.Sum256([]byte(parts))
	return &grant{Namespace: namespace, Name: name, UID: uid, Hash: hex.EncodeToString(sum[:])}
}

// grantOfAccount is nil without an account: what is the node's is everybody's.
func grantOfAccount(a *credentials.Account) *grant {
	if a == nil {
		return nil
	}
	return &grant{Namespace: a.Namespace, Name: a.Name, UID: a.UID}
}
