import type { ReleasedFile } from '../../shared/releases/manifest.ts'
import type { Source } from './contents.ts'

/** A formula of Homebrew for the tarballs; `from` is the address of the folder that has them. */
export function formulaOf(
  { version }: Source,
  { files, from }: { files: readonly ReleasedFile[]; from: string },
): { name: string; bytes: Buffer } {
  const systems = { darwin: 'on_macos', linux: 'on_linux' } as const
  const processors = { arm64: 'on_arm', x64: 'on_intel' } as const
  const lines = Object.entries(systems).flatMap(([system, onSystem]) => {
    const parts = Object.entries(processors).flatMap(([processor, onProcessor]) => {
      const file = files.find(({ kind, platform }) => kind === 'tarball' && platform === `${system}-${processor}`)
      if (file === undefined) return []
      return [
        `    ${onProcessor} do`,
        `      url "${from.replace(/\/$/, '')}/${file.name}"`,
        `      sha256 "${file.sha256}"`,
        '    end',
      ]
    })
    return parts.length === 0 ? [] : [`  ${onSystem} do`, ...parts, '  end']
  })
  const text = `class Svc < Formula
  desc "Run AI coding agents on your own machines"
  homepage "${from}"
  version "${version}"
  license "MIT"

${lines.join('\n')}

  def install
    libexec.install Dir["*"]
    bin.install_symlink libexec/"bin/svc", libexec/"bin/svc-device", libexec/"bin/svc-server"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/svc --version")
  end
end
`
  return { name: 'svc.rb', bytes: Buffer.from(text) }
}
