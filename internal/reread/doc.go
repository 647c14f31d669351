// Package reread puts in force what files say, whenever that changes while a server runs.
//
// It owns the loop that reads them again (Follower), and the memory of which mistakes were told already (Told). Which files they are, what
// is made of them and where that is kept is its callers': webhooks that authorize, issuers of tokens, encryption. It calls the standard
// library only.
//
// Promises: a text that is right is judged once, however often it is read, and one that is wrong again after a while, since it may name
// other files; while it is wrong, or cannot be put in force yet, what was in force stays so;
// a mistake is told once, and once more if the files were right in between.
//
// Tested in a synctest bubble, with a text in place of files.
package reread
