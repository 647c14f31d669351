package clockskew

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// ErrUnsupported: the process has no such page, or its machine is not amd64.
var ErrUnsupported = errors.New("the clock of this process cannot be set")

// functions are the names under which a program may ask for the time.
var functions = []string{"__vdso_clock_gettime", "clock_gettime"}

// Set makes the wall clock of the process differ from the machine's by offset, in whole
// seconds up to 68 years either way; 0 is right again. It may be called at any time,
// and again; the process sees one step. A thread that is inside the function's first
// instructions at the first call could go astray: it is there for nanoseconds.
func Set(pid int, offset time.Duration) error {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("the memory of process %d: %w", pid, err)
	}
	defer memory.Close()
	start, end, err := mappedPage(pid)
	if err != nil {
		return err
	}
	page := make([]byte, end-start)
	if _, err := memory.ReadAt(page, start); err != nil {
		return fmt.Errorf("reading process %d: %w", pid, err)
	}
	at, err := function(page)
	if err != nil {
		return err
	}
	if _, err := memory.WriteAt(clockGettime(int32(offset/time.Second)), start+at); err != nil {
		return fmt.Errorf("writing process %d: %w", pid, err)
	}
	return nil
}

// mappedPage finds where the kernel's code lies in the process.
func mappedPage(pid int) (start, end int64, err error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if strings.HasSuffix(lines.Text(), "[vdso]") {
			_, err := fmt.Sscanf(lines.Text(), "%x-%x", &start, &end)
			return start, end, err
		}
	}
	return 0, 0, fmt.Errorf("%w: process %d maps no [vdso]", ErrUnsupported, pid)
}

// function finds the clock's function in the page, which is an ELF file.
func function(page []byte) (offset int64, err error) {
	file, err := elf.NewFile(bytes.NewReader(page))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	if file.Machine != elf.EM_X86_64 {
		return 0, fmt.Errorf("%w: machine %v", ErrUnsupported, file.Machine)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	for _, name := range functions {
		for _, symbol := range symbols {
			if symbol.Name == name {
				return int64(symbol.Value), nil
			}
		}
	}
	return 0, fmt.Errorf("%w: no function for the time", ErrUnsupported)
}

// clockGettime is the function's code: the system call, then, for CLOCK_REALTIME (0)
// and CLOCK_REALTIME_COARSE (5), the offset added to the seconds of the answer.
func clockGettime(offsetSeconds int32) []byte {
	code := []byte{
		0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228 (clock_gettime)
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi
		0x74, 0x05, // jz add
		0x83, 0xff, 0x05, // cmp edi, 5
		0x75, 0x07, // jne done
		0x48, 0x81, 0x06, 0, 0, 0, 0, // add: add qword [rsi], offset
		0xc3, // done: ret
	}
	binary.LittleEndian.PutUint32(code[19:], uint32(offsetSeconds))
	return code
}
