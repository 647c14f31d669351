package translations

import (
	"os"
	"slices"

	"k8s.io/kubectl/pkg/util/i18n"
)

// skipped: kubectl asked for texts, and none were loaded.
var skipped bool

func init() {
	if err := i18n.SetLoadTranslationsFunc(load); err != nil {
		panic(err)
	}
}

// load is called once, by the first of kubectl's packages.
func load() error {
	if !slices.Contains(os.Args, "kubectl") {
		skipped = true
		return nil
	}
	return i18n.LoadTranslations("kubectl", nil)
}

// Skipped reports whether kubectl's packages came for texts after the hook was set, and got none.
func Skipped() bool { return skipped }
