import type { Blobs } from '../blobs/blobs.ts'
import type { Sweep } from './sweeper.ts'

/** Removes bytes that nobody needs any more, and those of uploads that were cut off an hour ago. */
export function blobsSweep({ blobs, everyMs }: { blobs: Pick<Blobs, 'sweep' | 'idle'>; everyMs: number }): Sweep {
  return { name: 'blobs', everyMs, run: ({ now }) => blobs.sweep(now), idle: () => blobs.idle() }
}
