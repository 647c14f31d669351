package machine

import "testing"

func TestHasFilesystem(t *testing.T) {
	with, without := "nodev\tsysfs\nnodev\tselinuxfs\n\text4\n", "nodev\tsysfs\nnodev\tselinuxfs2\n\text4\n"
	if !hasFilesystem(with, "selinuxfs") || hasFilesystem(without, "selinuxfs") || hasFilesystem("", "selinuxfs") {
		t.Error("the list of file systems is misread")
	}
}
