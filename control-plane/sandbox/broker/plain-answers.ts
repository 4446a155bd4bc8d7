import type { ServerResponse } from 'node:http'

// Answers of the broker itself, in words for whoever looks at what a program in the sandbox got.

export function refuseRequest(response: ServerResponse, status: number, message: string): 'refused' {
  endWith(response, status, message)
  return 'refused'
}

/** Breaks off where an answer has begun. */
export function endWith(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) return void response.destroy()
  response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' })
  response.end(`${message}\n`)
}
