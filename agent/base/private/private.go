// Package private makes folders and files that only this user, normally root, can read.
//
// It owns nothing. The agent and the embedded runtime call it for each folder of theirs below the data directory, at
// their start, and for their records: Secrets lie there, and setuid files of images, and the data directory itself may
// have been made by somebody else with a mode of his own, which stays. Tested with a folder that was open before.
package private

import (
	"errors"
	"os"
)

// Folder makes dir, with its parents, or takes away the access that others have to one made before.
func Folder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// WriteFile replaces path by data at once: after a crash or a power cut a reader sees the old content or the new one,
// never a part. It returns when the data is on disk. Two writers of one path need a lock of their own.
func WriteFile(path string, data []byte) error {
	file, err := os.OpenFile(path+temporarySuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(path+temporarySuffix, path)
}

const temporarySuffix = ".tmp"
