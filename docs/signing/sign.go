// Command sign signs a request under /v1 and sends it: sign METHOD TARGET [BODY [IDEMPOTENCY_KEY]]
//
// TARGET is the path from /v1 on, and the query: /v1/devices?limit=5. A BODY that begins with @ names a file.
// The environment has the key in API_KEY and API_SECRET, and in API_URL the server, without a slash at its end.
// TIMESTAMP and NONCE are for comparing with a test vector, and for nothing else.
package main

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

func signedRequest(method, target string, body []byte, idempotencyKey string) (*http.Request, error) {
	server, err := url.Parse(cmp.Or(os.Getenv("API_URL"), "http://127.0.0.1:8080"))
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(method, server.String()+target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	keyID := os.Getenv("API_KEY")
	timestamp := cmp.Or(os.Getenv("TIMESTAMP"), strconv.FormatInt(time.Now().Unix(), 10))
	random := make([]byte, 16)
	rand.Read(random)
	nonce := cmp.Or(os.Getenv("NONCE"), hex.EncodeToString(random))
	// Sign the octets that are sent. URL.Path is decoded, and Query().Encode() sorts: neither is what goes over the wire.
	path := strings.TrimPrefix(request.URL.EscapedPath(), server.EscapedPath())
	query := request.URL.RawQuery
	digest := fmt.Sprintf("%x", sha256.Sum256(body))
	canonical := strings.Join([]string{
		"CP1-HMAC-SHA256", keyID, timestamp, nonce, method, path, query, idempotencyKey, digest,
	}, "\n")
	mac := hmac.New(sha256.New, []byte(os.Getenv("API_SECRET")))
	mac.Write([]byte(canonical))

	request.Header.Set("X-Api-Key", keyID)
	request.Header.Set("X-Timestamp", timestamp)
	request.Header.Set("X-Nonce", nonce)
	request.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
	if idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", idempotencyKey)
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

func main() {
	arguments := append(os.Args[1:], "", "")
	if len(os.Args) < 3 || os.Getenv("API_KEY") == "" || os.Getenv("API_SECRET") == "" {
		log.Fatal("sign METHOD TARGET [BODY [IDEMPOTENCY_KEY]], with API_KEY and API_SECRET in the environment")
	}
	body := []byte(arguments[2])
	if name, isFile := strings.CutPrefix(arguments[2], "@"); isFile {
		content, err := os.ReadFile(name)
		if err != nil {
			log.Fatal(err)
		}
		body = content
	}
	request, err := signedRequest(arguments[0], arguments[1], body, arguments[3])
	if err != nil {
		log.Fatal(err)
	}
	// A redirect leads to a path that was not signed.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := (&http.Client{Timeout: time.Minute, CheckRedirect: stay}).Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	fmt.Fprintln(os.Stderr, answer.StatusCode)
	io.Copy(os.Stdout, answer.Body)
	if answer.StatusCode >= 400 {
		os.Exit(1)
	}
}
