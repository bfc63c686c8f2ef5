package protocol

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func frameOf(t testing.TB, body []byte) []byte {
	t.Helper()
	frame := append(BeginFrame(nil), body...)
	require.NoError(t, EndFrame(frame, 1<<30))
	return frame
}

// Every way in which a frame can be cut or malformed.
func TestFraming(t *testing.T) {
	var vectors struct {
		Cases []struct {
			Name           string  `json:"name"`
			BodyHex        *string `json:"body_hex"`
			FrameHex       string  `json:"frame_hex"`
			MaxPackageSize int     `json:"maxPackageSize"`
			BodyBytes      int     `json:"body_bytes"`
			HeaderHex      string  `json:"header_hex"`
			Expect         string  `json:"expect"`
			ExpectStatus   Status  `json:"expect_status"`
		} `json:"cases"`
	}
	text, err := os.ReadFile("testdata/framing.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &vectors))
	require.NotEmpty(t, vectors.Cases)

	for _, c := range vectors.Cases {
		t.Run(c.Name, func(t *testing.T) {
			switch {
			case c.BodyHex != nil:
				body, err := hex.DecodeString(*c.BodyHex)
				require.NoError(t, err)
				assert.Equal(t, c.FrameHex, hex.EncodeToString(frameOf(t, body)))
			case c.HeaderHex != "":
				header, err := hex.DecodeString(c.HeaderHex)
				require.NoError(t, err)
				var status error
				cost := allocated(func() {
					_, _, status = NewReader(bytes.NewReader(header), c.MaxPackageSize).Next()
				})
				assert.ErrorIs(t, status, StatusPackageTooLarge)
				assert.LessOrEqual(t, cost, uint64(slack))
			case c.Expect == "ok":
				frame := append(BeginFrame(nil), make([]byte, c.BodyBytes)...)
				require.NoError(t, EndFrame(frame, c.MaxPackageSize))
				body, _, err := NewReader(bytes.NewReader(frame), c.MaxPackageSize).Next()
				require.NoError(t, err)
				assert.Len(t, body, c.BodyBytes)
			default:
				frame := append(BeginFrame(nil), make([]byte, c.BodyBytes)...)
				assert.ErrorIs(t, EndFrame(frame, c.MaxPackageSize), c.ExpectStatus)
				_, _, err := NewReader(bytes.NewReader(frameOf(t, frame[HeaderSize:])), c.MaxPackageSize).Next()
				assert.ErrorIs(t, err, c.ExpectStatus)
			}
		})
	}
}

// bodies have sizes around those at which the Reader changes its method.
func bodies() [][]byte {
	var all [][]byte
	for i, n := range []int{1, 3, 100, 4091, 4092, 4093, 5000, 2, firstStep - 1, firstStep, firstStep + 1,
		1 << 20, 7, 4092, 4092, 1} {
		all = append(all, bytes.Repeat([]byte{byte(i + 1)}, n))
	}
	return all
}

func TestReaderReturnsEveryBodyHoweverItArrives(t *testing.T) {
	t.Parallel()
	var stream []byte
	for _, b := range bodies() {
		stream = append(stream, frameOf(t, b)...)
	}
	for name, src := range map[string]io.Reader{
		"all at once":            bytes.NewReader(stream),
		"byte by byte":           iotest.OneByteReader(bytes.NewReader(stream)),
		"half of what is asked":  iotest.HalfReader(bytes.NewReader(stream)),
		"the end with the data":  iotest.DataErrReader(bytes.NewReader(stream)),
		"with empty reads":       &hesitant{src: bytes.NewReader(stream)},
		"in pieces of 4096 byte": &pieces{src: bytes.NewReader(stream), n: 4096},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(src, DefaultPackageSize)
			for i, want := range bodies() {
				got, owned, err := r.Next()
				require.NoError(t, err, "body %d of %d bytes", i, len(want))
				require.True(t, bytes.Equal(want, got), "body %d of %d bytes", i, len(want))
				assert.Equal(t, len(want)+HeaderSize > bufferSize, owned)
			}
			_, _, err := r.Next()
			assert.Equal(t, io.EOF, err)
			assert.Zero(t, r.Buffered())
		})
	}
}

// hesitant returns nothing at every other read.
type hesitant struct {
	src  io.Reader
	next bool
}

func (h *hesitant) Read(p []byte) (int, error) {
	if h.next = !h.next; h.next {
		return 0, nil
	}
	return h.src.Read(p)
}

// pieces returns n bytes at most.
type pieces struct {
	src io.Reader
	n   int
}

func (s *pieces) Read(p []byte) (int, error) { return s.src.Read(p[:min(len(p), s.n)]) }

func TestReaderReadsAHeaderAndASmallBodyAtOnce(t *testing.T) {
	t.Parallel()
	one, two := frameOf(t, []byte("one")), frameOf(t, []byte("two!"))
	src := &counting{src: bytes.NewReader(append(one, two...))}
	r := NewReader(src, DefaultPackageSize)
	body, _, err := r.Next()
	require.NoError(t, err)
	assert.Equal(t, "one", string(body))
	assert.Equal(t, len(two), r.Buffered())
	body, _, err = r.Next()
	require.NoError(t, err)
	assert.Equal(t, "two!", string(body))
	assert.Equal(t, 1, src.reads)
}

type counting struct {
	src   io.Reader
	reads int
}

func (c *counting) Read(p []byte) (int, error) {
	c.reads++
	return c.src.Read(p)
}

func TestReaderNamesWhatEndsAStream(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	for name, c := range map[string]struct {
		src  io.Reader
		want error
	}{
		"the end between frames":      {strings.NewReader(""), io.EOF},
		"a header cut short":          {strings.NewReader("\x00\x00"), StatusProtocol},
		"a body cut short":            {strings.NewReader("\x00\x00\x00\x05abc"), StatusProtocol},
		"a large body cut short":      {strings.NewReader("\x00\x01\x00\x00abc"), StatusProtocol},
		"a body that does not come":   {strings.NewReader("\x00\x00\x00\x05"), StatusProtocol},
		"a body of nothing":           {strings.NewReader("\x00\x00\x00\x00abc"), StatusProtocol},
		"a frame over the limit":      {strings.NewReader("\x00\x20\x00\x00abc"), StatusPackageTooLarge},
		"the largest length":          {strings.NewReader("\xff\xff\xff\xff"), StatusPackageTooLarge},
		"a fault between frames":      {iotest.ErrReader(lost), lost},
		"a fault inside a frame":      {io.MultiReader(strings.NewReader("\x00\x00"), iotest.ErrReader(lost)), lost},
		"a fault inside a large body": {io.MultiReader(strings.NewReader("\x00\x01\x00\x00a"), iotest.ErrReader(lost)), lost},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(c.src, DefaultPackageSize)
			_, _, err := r.Next()
			require.ErrorIs(t, err, c.want)
			_, _, again := r.Next()
			assert.ErrorIs(t, again, c.want, "the error stays")
		})
	}
}

func TestReaderSaysWhenAFrameIsPartial(t *testing.T) {
	t.Parallel()
	small, large := frameOf(t, []byte("abcdef")), frameOf(t, make([]byte, 10_000))
	for name, c := range map[string]struct {
		arrivals [][]byte
		want     []bool
	}{
		"whole frames":            {[][]byte{small, small}, nil},
		"two frames at once":      {[][]byte{append(small[:len(small):len(small)], small...)}, nil},
		"a header, then the body": {[][]byte{small[:4], small[4:], small}, []bool{true, false}},
		"three pieces":            {[][]byte{small[:2], small[2:6], small[6:], small}, []bool{true, false}},
		"a frame and the next half": {[][]byte{append(small[:len(small):len(small)], small[:5]...), small[5:]},
			[]bool{true, false}},
		"a large body": {[][]byte{large[:4000], large[4000:], small}, []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var readers []io.Reader
			for _, a := range c.arrivals {
				readers = append(readers, bytes.NewReader(a))
			}
			r := NewReader(io.MultiReader(readers...), DefaultPackageSize)
			var got []bool
			r.Partial = func(begin bool) { got = append(got, begin) }
			for range 2 {
				_, _, err := r.Next()
				require.NoError(t, err)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestAFrameThatFailedInTheMiddleIsNotResumed(t *testing.T) {
	t.Parallel()
	frame := frameOf(t, make([]byte, 10_000))
	r := NewReader(iotest.TimeoutReader(&pieces{src: bytes.NewReader(frame), n: 5000}), DefaultPackageSize)
	for range 2 {
		_, _, err := r.Next()
		assert.ErrorIs(t, err, iotest.ErrTimeout)
	}
}

func TestABodyThatDoesNotComeCostsWhatHasArrived_Row71(t *testing.T) {
	for _, arrived := range []int{0, 1000, firstStep, firstStep + 1, 1 << 20, 2<<20 - 5} {
		t.Run(fmt.Sprint(arrived, " bytes"), func(t *testing.T) {
			stream := append([]byte{0, 0x1f, 0xff, 0xfc}, make([]byte, arrived)...)
			src := bytes.NewReader(stream)
			var err error
			cost := allocated(func() { _, _, err = NewReader(src, DefaultPackageSize).Next() })
			assert.ErrorIs(t, err, StatusProtocol)
			assert.LessOrEqual(t, cost, uint64(4*len(stream)+firstStep+slack))
		})
	}
}

func TestALargeBodyAfterAnotherCostsItsSize(t *testing.T) {
	frame := frameOf(t, make([]byte, 1<<20))
	r := NewReader(bytes.NewReader(bytes.Repeat(frame, 2)), DefaultPackageSize)
	_, _, err := r.Next()
	require.NoError(t, err)
	cost := allocated(func() { _, _, err = r.Next() })
	require.NoError(t, err)
	assert.LessOrEqual(t, cost, uint64(len(frame)+slack))
}

func TestEndFrameRefusesWhatIsOverTheLimit(t *testing.T) {
	t.Parallel()
	frame := append(BeginFrame(nil), make([]byte, 600)...)
	err := EndFrame(frame, MinPackageSize)
	assert.EqualError(t, err, "task package too large (-8): frame of 604 bytes, the limit is 512")
}

func TestReadingSmallFramesAllocatesNothing(t *testing.T) {
	frame := frameOf(t, []byte("abc"))
	src := bytes.NewReader(nil)
	r := NewReader(src, DefaultPackageSize)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		src.Reset(frame)
		if _, _, err := r.Next(); err != nil {
			t.Error(err)
		}
	}))
}

func TestWhatIsReadyIsReadWithoutTheStream(t *testing.T) {
	t.Parallel()
	const frames = 500
	var stream []byte
	for i := range frames {
		stream = append(stream, frameOf(t, bytes.Repeat([]byte{byte(i)}, 100))...)
	}
	reads := 0
	src := readerFunc(func(p []byte) (int, error) {
		reads++
		n := copy(p, stream)
		stream = stream[n:]
		return n, nil
	})
	r := NewReader(src, DefaultPackageSize)
	assert.False(t, r.Ready())
	for i := 0; i < frames; {
		var bodies [][]byte
		for again := true; again; again = r.Ready() {
			before := reads
			body, _, err := r.Next()
			require.NoError(t, err)
			require.True(t, len(bodies) == 0 || reads == before, "body %d", i)
			bodies = append(bodies, body)
		}
		for _, body := range bodies {
			require.Equal(t, bytes.Repeat([]byte{byte(i)}, 100), body)
			i++
		}
	}
	assert.Less(t, reads, 5, "frames that follow each other share reads")
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
