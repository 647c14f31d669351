// Package past has the commands about what objects were: `setpoint history`.
//
// It owns their flags and texts, and how changes are printed. It asks servers through server/admin.
//
// Promises: it changes nothing; colours are for terminals only, and what others have written cannot move the cursor.
//
// Tested here for what it prints, and through the binary by the script history.
package past
