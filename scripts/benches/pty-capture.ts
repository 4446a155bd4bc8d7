import { idFrom, type RunId } from '../../shared/lib/ids.ts'
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandDialogue } from '../../device-manager/harness/command/dialogue.ts'
import { Pipeline } from '../../device-manager/run-host/output/pipeline.ts'
import { launchInPty } from '../../device-manager/run-host/launch/pty.ts'
import { streamRedactor, wholeValues } from '../../device-manager/run-host/output/redaction.ts'
import { endedEvent } from '../../device-manager/run-host/end-report.ts'
import { EventWriter } from '../../device-manager/run-host/output/writer.ts'
import { writerLimits } from '../../device-manager/run-host/output/writer-options.ts'
import { openSpool } from '../../device-manager/spool/spool.ts'
import { Redactor } from '../../shared/lib/redact.ts'
import { realWorld } from '../../shared/lib/world.ts'
import type { Bench, Context } from './context.ts'
import { atLeast, compare } from './measure.ts'
import { size } from './sizes.ts'

/**
 * A program floods its terminal with lines of text. Ours is what a run host does with them, in one process: read, take
 * secrets out, cut into events, write these to the spool with full durability. The peer is a program in C that does
 * nothing but read. Both run the same flood; each byte that it printed must be in the spool afterwards.
 */
export const ptyCapture: Bench = {
  name: 'pty-capture',
  about: 'output of a terminal that is read, redacted and spooled per second, against a C loop that only reads',
  async run(context) {
    const programs = compilePrograms(context)
    if (programs === null) {
      context.say('NOT MEASURED: there is no C compiler for the peer')
      return []
    }
    const { flood, reader } = programs
    const peer = () => Promise.resolve([Number(execFileSync(reader, [flood], { encoding: 'utf8' }))])
    return [
      await compare({
        goal: 16,
        name: 'pty capture into the spool',
        unit: 'MB/s',
        peerIs: 'a C loop that reads',
        target: atLeast(0.8),
        rounds: context.rounds,
        ours: async (round) => [await capture(flood, join(context.scratch, `capture-${round}.db`))],
        peer,
      }),
    ]
  },
}

const megabyte = 1_000_000
/** Half of what a run may have unsent in its spool. */
const lines = size(400_000, 4000)
const line = 'The quick brown fox jumps over the lazy dog, and 0123456789 times more it does so.'
/** A terminal turns each line end into two bytes. */
const printedBytes = lines * (line.length + 2)

/** As a run has them: its token, and a secret of its agent. */
const secrets = [
  { name: 'SVC_TOKEN', value: 'eyJhbGciOiJFZERTQSJ9.eyJydW4iOiJydW5fMDAwMDAwMDAwMDAwMDAwMCJ9.c2lnbmF0dXJl' },
  { name: 'API_KEY', value: 'sk-test-0123456789abcdefghijklmnopqrstuvwxyz' },
]

async function capture(flood: string, path: string): Promise<number> {
  const spool = openSpool(path)
  const key = { runId: idFrom<RunId>('run_0000000000000001'), fence: 1 }
  const world = realWorld
  const writer = new EventWriter({
    world,
    key,
    spool,
    openSpool: () => openSpool(path, { repair: false }),
    log: () => undefined,
    onSpooled: () => undefined,
    onBroken: (message) => {
      throw new Error(message)
    },
    onDamaged: () => undefined,
    onGone: () => undefined,
    limits: writerLimits,
  })
  const redactor = new Redactor(secrets)
  const pipeline = new Pipeline({
    world,
    dialogue: commandDialogue(),
    redactor: streamRedactor(redactor),
    redact: wholeValues(redactor),
    isTranscript: true,
    lookUp: () => Promise.reject(new Error('a command asks nothing')),
    decide: () => {
      throw new Error('a command asks nothing')
    },
    emit: (bodies) => writer.emit(bodies),
    write: () => undefined,
    closeInput: () => undefined,
    onFinished: () => undefined,
    onEndNow: () => undefined,
  })
  let startedAt: number | null = null
  const child = launchInPty({
    file: flood,
    args: [],
    cwd: '/',
    env: {},
    onOutput: (chunk) => {
      startedAt ??= performance.now()
      pipeline.output(chunk)
    },
    onStderr: () => undefined,
  })
  await child.closed
  pipeline.end({ exitCode: 0, signal: null, stoppedFor: null })
  const reported = { exitReason: 'completed', exitCode: 0, signal: null, message: null, forced: false } as const
  await writer.finish(
    endedEvent({ ...reported, sessionId: null }),
    null,
    ({ eventCount, logHash, gapBytes, usage, sessionId }) => {
      const told = { toolCallCount: null, harnessVersion: null }
      return { ...reported, ...told, eventCount, logHash, gapBytes, usage, sessionId }
    },
  )
  const seconds = (performance.now() - (startedAt ?? Number.NaN)) / 1000
  demandWhole(path, key)
  writer.close()
  rmSync(path)
  return printedBytes / megabyte / seconds
}

function demandWhole(path: string, key: { runId: RunId; fence: number }): void {
  const spool = openSpool(path)
  let bytes = 0
  try {
    for (let seq = 0; ;) {
      const rows = spool.read(key, seq, 1024 * 1024)
      for (const row of rows) {
        const event = JSON.parse(Buffer.from(row.line).toString()) as { kind: string; data: { text?: string } }
        if (event.kind === 'gap') throw new Error('output was dropped')
        if (event.kind === 'text') bytes += Buffer.byteLength(event.data.text ?? '')
      }
      if (rows.length === 0) break
      seq = rows.at(-1)!.seq
    }
  } finally {
    spool.close()
  }
  if (bytes !== printedBytes) throw new Error(`${bytes} bytes of ${printedBytes} are in the spool`)
}

const floodSource = `
#include <string.h>
#include <unistd.h>
static char block[65536];
int main(void) {
  const char *line = "${line}\\n";
  size_t length = strlen(line), per = sizeof block / length;
  for (size_t i = 0; i < per; i++) memcpy(block + i * length, line, length);
  for (size_t left = ${lines}; left > 0;) {
    size_t now = left < per ? left : per;
    for (size_t at = 0; at < now * length;) {
      ssize_t n = write(1, block + at, now * length - at);
      if (n < 0) return 1;
      at += n;
    }
    left -= now;
  }
  return 0;
}
`

/** Prints megabytes per second from the first byte to the end, after it has counted them. */
const readerSource = `
#define _GNU_SOURCE
#include <pty.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static char buffer[65536];
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv) {
  int fd;
  struct winsize size = { .ws_row = 40, .ws_col = 120 };
  pid_t pid = forkpty(&fd, NULL, NULL, &size);
  if (pid == 0) { execl(argv[1], argv[1], (char *)NULL); _exit(127); }
  long bytes = 0;
  double started = 0;
  for (;;) {
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n <= 0) break;
    if (bytes == 0) started = now();
    bytes += n;
  }
  double seconds = now() - started;
  waitpid(pid, NULL, 0);
  if (bytes != ${printedBytes}L) { fprintf(stderr, "%ld bytes\\n", bytes); return 1; }
  printf("%f\\n", bytes / ${megabyte}.0 / seconds);
  return argc == 2 ? 0 : 2;
}
`

function compilePrograms({ scratch }: Context): { flood: string; reader: string } | null {
  const make = (name: string, source: string) => {
    const path = join(scratch, name)
    writeFileSync(`${path}.c`, source)
    execFileSync('cc', ['-O2', '-o', path, `${path}.c`, '-lutil'], { stdio: 'pipe' })
    return path
  }
  try {
    return { flood: make('flood', floodSource), reader: make('reader', readerSource) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
