/** Two soft tones: it is your turn. */

type Audio = AudioContext | null;
let audio: Audio = null;

export function chimeIsPossible(): boolean {
  return "AudioContext" in window;
}

/** To be called in a click: browsers let a page sound only after one. */
export function prepareChime(): void {
  if (chimeIsPossible()) audio ??= new AudioContext();
}

export function chime(): void {
  if (audio === null) return;
  const now = audio.currentTime;
  for (const [index, pitch] of [523.25, 783.99].entries()) {
    const tone = audio.createOscillator();
    const loudness = audio.createGain();
    const at = now + index * 0.16;
    tone.frequency.value = pitch;
    loudness.gain.setValueAtTime(0, at);
    loudness.gain.linearRampToValueAtTime(0.12, at + 0.02);
    loudness.gain.exponentialRampToValueAtTime(0.001, at + 0.9);
    tone.connect(loudness).connect(audio.destination);
    tone.start(at);
    tone.stop(at + 1);
  }
}
