# Begins a panel: everything that a panel before may have set is set anew. `note` lies in its corner.
reset
set origin left,bottom
set size width,height
set title title font ',13' offset 0,-0.4
set border 3 lc rgb '#555555'
set tics nomirror out scale 0.6
set grid ytics lc rgb '#E4E4E4' lt 1
set lmargin 10
set rmargin 2.5
set tmargin 2.2
set bmargin 3.4
unset key
set style fill solid 0.85 noborder
set label 90 note at graph 0.99,0.97 right font ',10' textcolor rgb '#888888' front
