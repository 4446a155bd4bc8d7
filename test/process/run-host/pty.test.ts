import { closeSync, constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { spawn } from 'node-pty'
import { expect, test } from 'vitest'

// The private fields of node-pty that device-manager/run-host/launch/pty.ts goes by, since it has no event for the end of the output
// (https://github.com/microsoft/node-pty/issues/72). An upgrade may change them without a word.

test('node-pty reads by the socket `_socket`, and notes an exit in `_boundClose` while the terminal is open', async () => {
  const options = { name: 'xterm', cols: 80, rows: 24, cwd: '/', env: {}, encoding: null }
  const pty = spawn('/bin/sh', ['-c', 'read line'], options)
  // Held open, as `holdOpen` does, so that the exit does not end the output by itself.
  const held = openSync(pty.ptsName, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK)
  const socket: Socket = Reflect.get(pty, '_socket')
  expect(socket, 'node-pty has changed: the end of what a program prints is lost').toBeInstanceOf(Socket)
  const destroy = socket.destroy.bind(socket)
  const closed = Promise.withResolvers<void>()
  socket.destroy = () => {
    closed.resolve()
    return socket
  }
  let noted = false
  const seen = Promise.withResolvers<void>()
  let value: unknown = Reflect.get(pty, '_boundClose')
  Object.defineProperty(pty, '_boundClose', {
    get: () => value,
    set: (given: unknown) => {
      value = given
      noted ||= given === true
      seen.resolve()
    },
  })
  pty.onData(() => undefined)
  pty.write('\n')
  await Promise.race([seen.promise, closed.promise])
  expect(noted, 'node-pty has changed: an exit is seen only once its timer has closed the terminal').toBe(true)
  await closed.promise
  expect(socket.destroyed, 'node-pty has changed: it closes the terminal otherwise than by `destroy`').toBe(false)
  closeSync(held)
  destroy()
})
