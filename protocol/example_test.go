package protocol_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/taskd-go/task/protocol"
)

// Example calls a task over a connection, as a client in another language would.
func Example() {
	client, worker := net.Pipe()
	go serveHello(worker)

	answer, err := callTask(client, "main.Hello", "\xa3Ada") // the msgpack str "Ada"
	fmt.Println(answer, err)
	// Output:
	// Hello, Ada <nil>
}

// callTask sends one package and waits for its response.
func callTask(conn net.Conn, task, payload string) (string, error) {
	defer conn.Close()
	reader := protocol.NewReader(conn, protocol.DefaultPackageSize)
	greeting, err := readResponse(reader)
	if err != nil {
		return "", err
	}
	worker, ok := protocol.ParseGreeting(&greeting)
	if !ok {
		return "", errors.New("the worker did not greet")
	}

	p := protocol.Package{Type: protocol.Sync, Alone: true, ID: 1, Task: []byte(task)}
	frame := protocol.AppendHead(protocol.BeginFrame(nil), &p)
	frame = append(frame, payload...)
	frame = protocol.AppendTail(frame, &p)
	if err := protocol.EndFrame(frame, worker.MaxPackageSize); err != nil {
		return "", err
	}
	if _, err := conn.Write(frame); err != nil {
		return "", err
	}
	for {
		r, err := readResponse(reader)
		switch {
		case err != nil:
			return "", err // the task may have run
		case r.ID != p.ID:
			continue // a notice
		case !r.OK:
			return "", fmt.Errorf("%w: %s", r.Status, r.Text())
		}
		return r.Text(), nil
	}
}

func readResponse(reader *protocol.Reader) (protocol.Response, error) {
	body, _, err := reader.Next()
	if err != nil {
		return protocol.Response{}, err
	}
	return protocol.ParseResponse(body)
}

// serveHello is the worker's side of one call.
func serveHello(conn net.Conn) {
	defer conn.Close()
	greeting := protocol.Greeting{Index: 0, Generation: 1, PID: 4711, MaxPackageSize: protocol.DefaultPackageSize}
	conn.Write(protocol.AppendGreeting(nil, greeting))
	body, _, err := protocol.NewReader(conn, protocol.DefaultPackageSize).Next()
	if err != nil {
		return
	}
	p, err := protocol.ParsePackage(body)
	if err != nil {
		return
	}
	name := protocol.Response{Data: p.Payload}
	r := protocol.Response{ID: p.ID, OK: true, TaskID: 1, Data: protocol.AppendText(nil, "Hello, "+name.Text())}
	frame := protocol.AppendResponse(protocol.BeginFrame(nil), &r)
	if protocol.EndFrame(frame, protocol.DefaultPackageSize) == nil {
		conn.Write(frame)
	}
}

// A Reader splits a stream into frames and enforces the limit of their size.
func ExampleReader() {
	stream := []byte{
		0, 0, 0, 6, 0x96, 1, 8, 0xc3, 0, 0xc0, // an array of 6 with 5 elements
		0, 0, 0, 7, 0x96, 1, 9, 0xc3, 0, 0xc0, 41,
		0, 0x20, 0, 0, // a header that announces 2 MiB
	}
	reader := protocol.NewReader(bytes.NewReader(stream), protocol.DefaultPackageSize)
	for {
		body, _, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, protocol.StatusPackageTooLarge) {
			fmt.Println(err)
			break
		}
		r, err := protocol.ParseResponse(body)
		fmt.Println(r.ID, r.OK, r.TaskID, err)
	}
	// Output:
	// 0 false 0 task package protocol error (-3): response claims 6 elements in 6 bytes
	// 9 true 41 <nil>
	// task package too large (-8): frame of 2097156 bytes, the limit is 2097152
}

// ParsePackage returns what a worker needs of a request, and the id even if the rest is invalid.
func ExampleParsePackage() {
	body := []byte{0x96, 1, 2, 7, 0, 0xa9}
	body = append(body, "mail.Send"...)
	body = append(body, 0xc0)
	p, err := protocol.ParsePackage(body)
	fmt.Printf("id %d, task %s, payload %x, %v\n", p.ID, p.Task, p.Payload, err)

	body[4] = 0xc3 // the deadline is a bool
	_, err = protocol.ParsePackage(body)
	var invalid *protocol.Error
	if errors.As(err, &invalid) {
		fmt.Println("id", invalid.ID, err)
	}
	// Output:
	// id 7, task mail.Send, payload c0, <nil>
	// id 7 task package illegal (-4): package expire is true, it must be an integer of 64 bits with sign
}

// Check tests a value before a msgpack library decodes it.
func ExampleCheck() {
	for _, b := range [][]byte{
		{0x92, 1, 2, 0xc0},              // [1, 2], then nil
		{0xdd, 0xff, 0xff, 0xff, 0xff},  // an array of 4,294,967,295 elements
		bytes.Repeat([]byte{0x91}, 100), // arrays within arrays
		{0xa5, 'h', 'e', 'l'},           // a str of 5 bytes
	} {
		n, err := protocol.Check(b)
		fmt.Println(n, err)
	}
	// Output:
	// 3 <nil>
	// 0 task package illegal (-4): msgpack array at byte 0 of 5 claims more elements than bytes are left
	// 0 task package illegal (-4): msgpack array at byte 64 of 100 nests deeper than the limit
	// 0 task package illegal (-4): msgpack value at byte 0 of 4 is cut short
}
