#!/bin/sh
# Makes the media that the tests download, with Debian's ffmpeg 5.1: six seconds of ffmpeg's own test
# card and tones, 25 pictures a second. Run by hand; the results in files/ are committed. Playlists,
# manifests, encryption and what is only cut or joined differently is made by the tests from these.
set -eu
cd "$(dirname "$0")"
rm -rf files
mkdir files
cd files

encode() { ffmpeg -hide_banner -loglevel error -y -fflags +bitexact -threads 1 "$@"; }
seconds=6
picture="testsrc=size=160x90:rate=25:duration=$seconds"
tone="sine=frequency=440:sample_rate=48000:duration=$seconds"
other_tone="sine=frequency=660:sample_rate=48000:duration=$seconds"
exact="-map_metadata -1 -flags +bitexact -fflags +bitexact"
h264="-c:v libx264 -preset veryslow -crf 34 -pix_fmt yuv420p -g 25 -keyint_min 25 -sc_threshold 0 -bf 2 -x264-params open-gop=0"
aac="-c:a aac -b:a 32k -ac 1"

# Whole files.
encode -f lavfi -i "$picture" -f lavfi -i "$tone" $exact $h264 $aac -movflags +faststart index-first.mp4
encode -i index-first.mp4 $exact -c copy index-last.mp4
encode -i index-first.mp4 $exact -c copy h264-aac.mkv
encode -i index-first.mp4 $exact -vn -c copy aac.m4a
encode -f lavfi -i "$tone" $exact -c:a libmp3lame -b:a 32k tone.mp3
encode -f lavfi -i "$tone" $exact -c:a libvorbis -b:a 48k -ac 1 vorbis.ogg
encode -f lavfi -i "$picture" -f lavfi -i "$tone" $exact -c:v libvpx-vp9 -b:v 0 -crf 50 -g 25 -c:a libopus -b:a 24k vp9-opus.webm
encode -f lavfi -i "$picture" -f lavfi -i "$tone" $exact -c:v libvpx -b:v 60k -g 25 -c:a libvorbis -b:a 48k vp8-vorbis.webm

# HLS: one file a rendition, whose playlist tells the segments' bytes and lengths. MPEG-TS is named m2t,
# since tools take "ts" for TypeScript.
hls() { # name, kind, arguments …
  name=$1 kind=$2
  shift 2
  encode "$@" $exact -f hls -hls_time 1 -hls_list_size 0 -hls_playlist_type vod -hls_flags single_file \
    -hls_segment_type "$kind" -hls_segment_filename "$name" "$name.m3u8"
}
hls high.m2t mpegts -i index-first.mp4 -c copy
hls low.m2t mpegts -i index-first.mp4 -vf scale=96:54 $h264 -c:a copy
hls silent.m2t mpegts -i index-first.mp4 -an -c copy
hls muxed.m4s fmp4 -i index-first.mp4 -c copy
hls video.m4s fmp4 -i index-first.mp4 -an -c copy
hls video-low.m4s fmp4 -i low.m2t -an -c copy
hls audio-en.m4s fmp4 -i aac.m4a -c copy
hls audio-de.m4s fmp4 -f lavfi -i "$other_tone" $aac
hls mp3.m2t mpegts -i low.m2t -i tone.mp3 -map 0:v -map 1:a -c copy
hls ac3.m2t mpegts -i low.m2t -f lavfi -i "$tone" -map 0:v -map 1:a -c:v copy -c:a ac3 -b:a 64k
hls eac3.m2t mpegts -i low.m2t -f lavfi -i "$tone" -map 0:v -map 1:a -c:v copy -c:a eac3 -b:a 64k
hls hevc.m2t mpegts -f lavfi -i "$picture" -i aac.m4a -c:v libx265 -preset fast -crf 36 -pix_fmt yuv420p \
  -x265-params "keyint=25:min-keyint=25:scenecut=0:open-gop=0:bframes=2:info=0:log-level=none" -c:a copy
encode -i aac.m4a $exact -c copy -f adts tone.aac

# Under DRM: Common Encryption (ISO/IEC 23001-7).
encode -i video.m4s $exact -c copy -movflags frag_keyframe+empty_moov+default_base_moof -encryption_scheme cenc-aes-ctr \
  -encryption_key 000102030405060708090a0b0c0d0e0f -encryption_kid 101112131415161718191a1b1c1d1e1f -f mp4 locked.m4s

# DASH: single files with an index (SegmentBase), and WebM.
encode -i index-first.mp4 $exact -an -c copy -movflags +dash+frag_keyframe+global_sidx single-video.mp4
encode -i aac.m4a $exact -c copy -movflags +dash+global_sidx -frag_duration 1000000 single-audio.mp4
chunks=$(mktemp -d)
encode -i vp9-opus.webm $exact -c copy -f dash -seg_duration 1 -dash_segment_type webm \
  -init_seg_name 'init-$RepresentationID$.webm' -media_seg_name 'chunk-$RepresentationID$-$Number%05d$.webm' "$chunks/webm.mpd"
cat "$chunks"/init-0.webm "$chunks"/chunk-0-*.webm >video.webm
cat "$chunks"/init-1.webm "$chunks"/chunk-1-*.webm >audio.webm
rm -r "$chunks"
du -sb .
